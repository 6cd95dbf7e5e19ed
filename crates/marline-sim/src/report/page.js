// Switches schedulers in all plots of a section, and exports plots. It asks nobody for anything.
"use strict";

for (const section of document.querySelectorAll("section")) {
  const form = section.querySelector(".switches");
  const off = new Set();
  const show = () => {
    for (const part of section.querySelectorAll("g[data-name]")) {
      const gone = off.has(part.dataset.name);
      part.classList.toggle("off", gone);
      if (part.classList.contains("key")) part.setAttribute("aria-pressed", String(!gone));
    }
    for (const box of form?.querySelectorAll("input") ?? []) box.checked = !off.has(box.name);
  };
  const turn = (name) => {
    if (!off.delete(name)) off.add(name);
    show();
  };
  for (const key of section.querySelectorAll("g.key")) {
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.addEventListener("click", () => turn(key.dataset.name));
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      turn(key.dataset.name);
    });
  }
  if (form) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => turn(event.target.name));
    form.addEventListener("click", (event) => {
      const wanted = event.target.dataset.switch;
      if (!wanted) return;
      off.clear();
      if (wanted === "none") for (const box of form.querySelectorAll("input")) off.add(box.name);
      show();
    });
    // The switches look like the lines.
    for (const label of form.querySelectorAll("label")) {
      const name = label.querySelector("input").name;
      const drawn = [...section.querySelectorAll("g.key")].find((key) => key.dataset.name === name);
      const colour = (drawn ?? [...section.querySelectorAll("g.series")].find((part) => part.dataset.name === name))
        ?.querySelector("[stroke]:not([stroke=none]),[fill]:not([fill=none])");
      const mark = document.createElement("i");
      const line = [...(drawn?.querySelectorAll("[stroke]:not([stroke=none])") ?? [])].pop();
      const fill = [...(drawn?.querySelectorAll("polygon") ?? [])].pop()?.getAttribute("fill");
      mark.style.background = line?.getAttribute("stroke") ?? fill ?? colour?.getAttribute("fill") ?? "currentColor";
      label.insertBefore(mark, label.lastChild);
    }
  }
  show();
}

// A plot as it is seen, on white paper, whatever the screen's colours are.
function picture(svg) {
  const copy = svg.cloneNode(true);
  for (const part of copy.querySelectorAll(".off")) {
    if (part.classList.contains("key")) part.setAttribute("opacity", "0.25");
    else part.remove();
  }
  const paper = document.createElementNS(svg.namespaceURI, "rect");
  for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", "#FFFFFF"]]) paper.setAttribute(name, value);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}
function save(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg");
  const name = svg.getAttribute("aria-label").replace(/[^\p{L}\p{N}.-]+/gu, "-").replace(/^-|-$/g, "");
  const button = (text, act) => {
    const made = document.createElement("button");
    made.textContent = text;
    made.title = `Save this plot as ${text}`;
    made.addEventListener("click", act);
    figure.querySelector("figcaption").append(" ", made);
  };
  button("SVG", () => save(new Blob([picture(svg)], { type: "image/svg+xml" }), `${name}.svg`));
  button("PNG", () => {
    const { width, height } = svg.viewBox.baseVal;
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const image = new Image();
    image.onload = () => {
      canvas.getContext("2d").drawImage(image, 0, 0, width, height);
      canvas.toBlob((content) => save(content, `${name}.png`));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture(svg))}`;
  });
}
