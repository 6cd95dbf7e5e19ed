// Links differ by colour, by dash, and by their name beside the figure. The colours are
// those of Okabe and Ito (Color Universal Design), which people with any kind of colour vision
// distinguish; on a light ground yellow is darkened.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b5559a", "#c78500", "#3c9bd6", "#857700", "#444444"];
const DARK = ["#56b4e9", "#e69f00", "#1fc795", "#dd94bf", "#f0e442", "#f07a2a", "#7f9cff", "#cccccc"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4], [2, 6], [6, 2, 2, 2, 2, 2]];

const dark = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => dark.matches;
export const onTheme = (changed: () => void) => dark.addEventListener("change", changed);

export const colour = (index: number) => (isDark() ? DARK : LIGHT)[index % LIGHT.length]!;
// The second round of colours has the next dashes, so that no two are alike.
export const dash = (index: number) => DASHES[(index + Math.floor(index / LIGHT.length)) % DASHES.length]!;

const SVG = "http://www.w3.org/2000/svg";
// A piece of the link's line.
export function sample(index: number): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `sample tone${index % LIGHT.length}`);
  svg.setAttribute("viewBox", "0 0 28 8");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of [["x1", "1"], ["x2", "27"], ["y1", "4"], ["y2", "4"], ["stroke-width", "3"]])
    line.setAttribute(name!, value!);
  line.setAttribute("stroke", "currentColor");
  line.setAttribute("stroke-dasharray", dash(index).join(" "));
  svg.append(line);
  return svg;
}
