//! `marline top`: what `marline status` shows, and what happens meanwhile, again every second.

mod screen;

use super::CliError;
use super::status::request_of;
use crate::control::Status;
use crate::control::protocol::{Outcome, Request};
use crate::control::status::Role;
use crate::web::Store;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the program is asked.
const EVERY: Duration = Duration::from_secs(1);

/// Watch a running client or server: links, live entries, flows, and what happens to them
///
/// In a terminal of 80 x 24 or more: in one sentence why it is slow now; a line for each link with
/// its state, since when and why, round trip, loss, rates both ways and the last two minutes of
/// what it carried; live entries; what has happened since it was started. Keys: q or Esc ends it,
/// up and down move through the links. `--web` of client and server shows 24 hours in a browser.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  marline top                          the client of this user, or its server if there is no client
  marline top --control /run/marline/server.sock")]
pub(super) struct Args {
    /// Control socket of the instance to watch.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// What is on the screen.
#[derive(Debug, Default)]
struct View {
    status: Option<Status>,
    /// Why there is nothing newer.
    silent: Option<String>,
    store: Store,
    /// When it was looked at last, Unix time, seconds.
    at: f64,
    /// Links above the first that is shown.
    scrolled: usize,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if !io::stdout().is_terminal() {
        return Err(CliError::usage("standard output is no terminal")
            .hint("`marline status` prints once, and `marline status --json` for programs"));
    }
    let mut view = View::default();
    view.look(ask(args)?);
    let mut terminal = ratatui::try_init().map_err(CliError::runtime)?;
    let shown = show(&mut terminal, args, &mut view);
    ratatui::restore();
    shown.map_err(CliError::runtime)
}

fn show(terminal: &mut ratatui::DefaultTerminal, args: &Args, view: &mut View) -> io::Result<()> {
    let mut due = Instant::now() + EVERY;
    loop {
        terminal.draw(|frame| screen::draw(frame, view))?;
        if event::poll(due.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        return Ok(());
                    }
                    KeyCode::Down | KeyCode::Char('j') => view.scrolled += 1,
                    KeyCode::Up | KeyCode::Char('k') => {
                        view.scrolled = view.scrolled.saturating_sub(1);
                    }
                    _ => {}
                },
                _ => {}
            }
            continue;
        }
        due = Instant::now() + EVERY;
        match ask(args) {
            Ok(status) => view.look(status),
            Err(error) => view.silent = Some(error.in_one()),
        }
    }
}

fn ask(args: &Args) -> Result<Status, CliError> {
    let roles = [Role::Client, Role::Server];
    match request_of(&roles, args.control.as_ref(), &Request::Status)? {
        Outcome::Status { status } => Ok(*status),
        _ => Err(CliError::runtime(
            "it answered something else than its status",
        )),
    }
}

impl View {
    fn look(&mut self, status: Status) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since.map_or(0.0, |since| since.as_secs_f64());
        self.look_at(status, at, Instant::now());
    }

    /// At this Unix time, seconds, which is `now`.
    fn look_at(&mut self, status: Status, at: f64, now: Instant) {
        self.store.look(&status, at, now);
        (self.status, self.silent, self.at) = (Some(status), None, at);
    }
}
