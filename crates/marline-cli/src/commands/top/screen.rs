//! The screen: a sentence, a line for each link, live entries, flows, what happened.

use super::View;
use crate::control::Status;
use crate::control::status::{PathStatus, Role};
use crate::control::words::{
    brief, bytes, figure, mbps, percent, shortened, some, spoken, unknown,
};
use crate::web::{Level, Why, path_key};
use marline_apps::live::status::LiveStatus;
use marline_proto::path::PathState;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

/// Columns of a link's figures, those of its name left out.
const FIGURES: usize = 53;
/// Lines that what happened has at least, its title with it.
const LEAST_EVENTS: u16 = 5;
/// Most live entries that are shown.
const ENTRIES: usize = 4;
/// A path's queue of more bytes is worth a word.
const MUCH: u64 = 64 << 10;
/// Seconds that a bar stands for.
const BAR: usize = 6;

pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let Some(status) = &view.status else { return };
    let width = usize::from(frame.area().width);
    let links = links(view, status, width);
    let wanted = links.iter().map(Vec::len).sum::<usize>() + 1;
    let live = entries(&status.live, width);
    let height = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
    let [head, why, top, middle, flows, events] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Max(height(wanted)),
        Constraint::Length(height(live.len())),
        Constraint::Length(2),
        Constraint::Min(LEAST_EVENTS),
    ])
    .areas(frame.area());
    frame.render_widget(heading(status), head);
    frame.render_widget(sentence(view, status), why);
    frame.render_widget(Paragraph::new(fitted(links, view, top.height)), top);
    frame.render_widget(Paragraph::new(live), middle);
    frame.render_widget(flow_line(status), flows);
    frame.render_widget(Paragraph::new(happened(view, events.height)), events);
}

fn quiet() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn title(text: String) -> Line<'static> {
    Line::styled(text, quiet())
}

fn heading(status: &Status) -> Line<'static> {
    let role = match status.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    let state = match status.sessions.as_slice() {
        [] => "no session".to_owned(),
        [session] => session.state.clone(),
        sessions => some(sessions.len() as u64, "client"),
    };
    let (version, up) = (&status.version, spoken(status.uptime_s));
    title(format!(
        "marline {role} {version} · {state} · up {up} · q ends this"
    ))
}

fn sentence(view: &View, status: &Status) -> Paragraph<'static> {
    let why = match &view.silent {
        Some(text) => Why {
            level: Level::Down,
            text: text.clone(),
        },
        None => Why::of(status),
    };
    let (mark, colour) = match why.level {
        Level::Fine => ("● ", Color::Green),
        Level::Slow => ("▲ ", Color::Yellow),
        Level::Down => ("■ ", Color::Red),
    };
    let text = Span::styled(why.text, Style::new().add_modifier(Modifier::BOLD));
    let line = Line::from(vec![Span::styled(mark, Style::new().fg(colour)), text]);
    Paragraph::new(line).wrap(Wrap { trim: true })
}

/// What is shown of each link: its line, and a second one if there is something to say.
fn links(view: &View, status: &Status, width: usize) -> Vec<Vec<Line<'static>>> {
    let sessions = status.sessions.iter();
    let paths = sessions.flat_map(|session| session.paths.iter().map(move |path| (session, path)));
    let shown = paths.map(|(session, path)| {
        let key = path_key(status.role, session, path);
        link(view, &key, path, width)
    });
    shown.collect()
}

/// As many links as there is room for, from the first that is wanted, below their heads.
fn fitted(links: Vec<Vec<Line<'static>>>, view: &View, height: u16) -> Vec<Line<'static>> {
    let head = format!(
        "{:<name$} {:<11}{:>5} {:>7} {:>6} {:>6} {:>6}  {}",
        "link",
        "state",
        "for",
        "rtt ms",
        "loss %",
        "in",
        "out Mb/s",
        "last 2 min",
        name = NAME,
    );
    let mut lines = vec![title(head)];
    let first = view.scrolled.min(links.len().saturating_sub(1));
    let mut left = links.len() - first;
    for link in links.into_iter().skip(first) {
        // A line is kept for saying that there are more.
        if lines.len() + link.len() + usize::from(left > 1) > usize::from(height) {
            break;
        }
        left -= 1;
        lines.extend(link);
    }
    if left > 0 {
        lines.push(title(format!("… and {left} more: down and up")));
    }
    lines
}

/// Columns of a link's name.
const NAME: usize = 13;

fn link(view: &View, key: &str, path: &PathStatus, width: usize) -> Vec<Line<'static>> {
    let figures = |column| view.store.path_figures(key, column);
    let (sent, received) = (figures("sent_bps"), figures("received_bps"));
    let newest = |figures: &[f32]| {
        let value = figures.last().copied().filter(|value| value.is_finite());
        value.map_or_else(unknown, |value| mbps(value as u64))
    };
    let (mark, style) = match path.state {
        PathState::Active => ("● ", Style::new().fg(Color::Green)),
        PathState::Standby | PathState::Validating => ("‖ ", quiet()),
        PathState::Suspect => ("▲ ", Style::new().fg(Color::Yellow)),
        PathState::Dead => ("✕ ", Style::new().fg(Color::Red)),
    };
    let numbers = format!(
        "{:>5} {:>7} {:>6} {:>6} {:>8}  ",
        brief(path.for_s),
        path.rtt_ms.map_or_else(unknown, figure),
        path.loss.map_or_else(unknown, percent),
        newest(&received),
        newest(&sent),
    );
    let room = width.saturating_sub(NAME + FIGURES).min(20);
    let both: Vec<f32> = sent
        .iter()
        .zip(&received)
        .map(|(one, other)| one + other)
        .collect();
    let line = Line::from(vec![
        Span::raw(format!("{:<NAME$} ", shortened(&path.name, NAME))),
        Span::styled(format!("{mark}{:<9}", path.state.name()), style),
        Span::raw(numbers),
        Span::styled(bars(&both, room), Style::new().fg(Color::Blue)),
    ]);
    let mut notes = Vec::new();
    if path.state != PathState::Active {
        notes.push(path.reason.clone());
    }
    if path.cost > 0 {
        notes.push(format!("cost {}", path.cost));
    }
    if let Some(budget) = &path.budget {
        let (used, limit) = (bytes(budget.used_bytes), bytes(budget.limit_bytes));
        notes.push(format!("{used} of {limit} used"));
    }
    if path.queue_bytes > MUCH {
        notes.push(format!("{} wait for it", bytes(path.queue_bytes)));
    }
    let note = notes.join("; ");
    match note.is_empty() {
        true => vec![line],
        false => vec![
            line,
            title(format!("  {}", shortened(&note, width.saturating_sub(2)))),
        ],
    }
}

/// What was carried, a bar for some seconds, the newest at the right; the highest is the most.
fn bars(figures: &[f32], room: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut heights: Vec<f32> = figures
        .rchunks(BAR)
        .take(room)
        .map(|some| {
            let known: Vec<f32> = some.iter().copied().filter(|one| one.is_finite()).collect();
            known.iter().sum::<f32>() / known.len().max(1) as f32
        })
        .collect();
    heights.reverse();
    let most = heights.iter().copied().fold(0.0, f32::max);
    let bar = |height: &f32| {
        let step = height / most.max(1.0) * (BARS.len() - 1) as f32;
        BARS.get(step.round() as usize).copied().unwrap_or('█')
    };
    heights.iter().map(bar).collect()
}

fn entries(live: &[LiveStatus], width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for entry in live.iter().take(ENTRIES) {
        let LiveStatus { sent, received, .. } = entry;
        let mut parts = vec![format!(
            "live {}: {} Mb/s",
            entry.name,
            mbps(sent.rate_bps.max(received.rate_bps))
        )];
        if let Some(target) = entry.target_bps {
            parts.push(format!("target {}", mbps(target)));
        }
        if let Some(capacity) = entry.capacity_bps {
            parts.push(format!("the links carry {}", mbps(capacity)));
        }
        if let Some(delay) = sent.delay_ms {
            let (p50, p95, p99) = (figure(delay.p50), figure(delay.p95), figure(delay.p99));
            parts.push(format!("ms 50/95/99 %: {p50}/{p95}/{p99}"));
        }
        match sent.datagrams {
            0 => parts.push(format!("lost {}", received.lost)),
            _ => {
                let (gone, repaired) = (sent.given_up, sent.repaired);
                parts.push(format!("given up {gone}, repaired {repaired}"));
                parts.push(format!("extra {} %", percent(sent.redundancy)));
            }
        }
        let style = match entry.capacity_bps {
            Some(_) => Style::new().fg(Color::Yellow),
            None => Style::new(),
        };
        for line in textwrap::wrap(
            &parts.join(" · "),
            textwrap::Options::new(width.max(20)).subsequent_indent("  "),
        ) {
            lines.push(Line::styled(line.into_owned(), style));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, Line::default());
    }
    lines
}

fn flow_line(status: &Status) -> Paragraph<'static> {
    let flows = || status.sessions.iter().flat_map(|session| &session.flows);
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for flow in flows() {
        match kinds.iter_mut().find(|(kind, _)| *kind == flow.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&flow.kind, 1)),
        }
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let waiting: u64 = flows().map(|flow| flow.backlog_bytes).sum();
    let text = match kinds.is_empty() {
        true => "no flow is open".to_owned(),
        false => format!("flows: {}; {} wait", kinds.join(", "), bytes(waiting)),
    };
    Paragraph::new(vec![Line::default(), title(text)])
}

fn happened(view: &View, height: u16) -> Vec<Line<'static>> {
    let mut lines = vec![title("what happened".to_owned())];
    let room = usize::from(height).saturating_sub(1);
    let events: Vec<_> = view.store.events_after(0).collect();
    let newest = events.iter().rev().take(room);
    lines.extend(newest.map(|event| {
        let style = match event.kind {
            "dead" | "outage" => Style::new().fg(Color::Red),
            "suspect" | "target" => Style::new().fg(Color::Yellow),
            "back" => Style::new().fg(Color::Green),
            _ => Style::new(),
        };
        let ago = format!("{:>5} ago  ", brief(view.at - event.at));
        Line::from(vec![
            Span::styled(ago, quiet()),
            Span::styled(event.text.clone(), style),
        ])
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::{Duration, Instant};

    /// The screen's lines.
    fn shown(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| {
            (0..width)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        };
        (0..height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn watched() -> View {
        let mut view = View::default();
        let mut status = example();
        let start = Instant::now();
        let at = |second: u32| {
            (
                1000.0 + f64::from(second),
                start + second * Duration::from_secs(1),
            )
        };
        for second in 0..30 {
            status.sessions[0].paths[0].sent_bytes += 1_000_000;
            let (unix, now) = at(second);
            view.look_at(status.clone(), unix, now);
        }
        status.sessions[0].paths[0].sent_bytes += 1_000_000;
        status.sessions[0].paths[0].state = PathState::Suspect;
        status.sessions[0].paths[0].reason = "feedback is overdue".into();
        let (unix, now) = at(30);
        view.look_at(status, unix, now);
        view
    }

    #[test]
    fn a_screen_of_80_by_24_says_what_is_wrong_and_since_when() {
        let lines = shown(&watched(), 80, 24);
        let text = lines.join("\n");
        for expected in [
            "marline client 0.1.0 · established · up 1m 1s · q ends this",
            "▲ Live cam needs 10.0 Mb/s, and the links carry 7.5 Mb/s.",
            "▲ suspect",
            "feedback is overdue",
            "✕ dead",
            "31.2",
            "8.0",
            "▁",
            "live cam: 9.9 Mb/s · target 10.0 · the links carry 7.5",
            "31.5/42.5/57.5",
            "flows: 1 stream; 10 B wait",
            "what happened",
            "wlan0 is in doubt: feedback is overdue",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        assert!(lines[0].starts_with("marline client"));
    }

    #[test]
    fn more_links_than_lines_can_be_moved_through() {
        let mut view = watched();
        let mut status = view.status.clone().unwrap();
        let path = status.sessions[0].paths[0].clone();
        status.sessions[0].paths = (0..40)
            .map(|id| PathStatus {
                name: format!("modem{id}"),
                state: PathState::Active,
                ..path.clone()
            })
            .collect();
        view.look_at(status, 1031.0, Instant::now());
        // Each has an event besides, which begins with how long ago it was.
        let shows = |view: &View, name: &str| {
            let lines = shown(view, 80, 24);
            lines
                .iter()
                .any(|line| line.starts_with(&format!("{name} ")))
        };
        assert!(shows(&view, "modem0") && !shows(&view, "modem39"));
        let text = shown(&view, 80, 24).join("\n");
        assert!(text.contains("more: down and up"), "{text}");
        view.scrolled = 35;
        assert!(shows(&view, "modem39") && !shows(&view, "modem0"));
        // What is scrolled beyond the end shows the last one.
        view.scrolled = 1000;
        assert!(shows(&view, "modem39"));
    }

    #[test]
    fn no_size_and_no_status_is_too_small() {
        for (width, height) in [(1, 1), (10, 3), (79, 5), (200, 60)] {
            shown(&watched(), width, height);
            shown(&View::default(), width, height);
        }
    }

    #[test]
    fn a_program_that_is_gone_is_said_to_be() {
        let mut view = watched();
        view.silent = Some("no running marline answers".into());
        let text = shown(&view, 80, 24).join("\n");
        assert!(text.contains("■ no running marline answers"), "{text}");
    }
}
