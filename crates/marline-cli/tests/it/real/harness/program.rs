use super::{DEADLINE, not_installed};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The program, without anything from the environment that would change what it does.
fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command
        .args(words)
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env("XDG_STATE_HOME", folder)
        .env("NO_COLOR", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    if std::env::var_os("MARLINE_LOG").is_none() {
        command.env("MARLINE_LOG", "info");
    }
    command
}

/// Runs the program to its end; returns its exit code, standard output and standard error.
///
/// # Panics
/// When it does not end in time, or ends by a signal.
pub(crate) fn marline(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut program = Program::start("marline", folder, words);
    let status = program.wait();
    let code = status.code().expect("the program ended by itself");
    (code, program.stdout.text(), program.stderr.text())
}

/// Lines as they come from a pipe.
#[derive(Debug, Default)]
struct Lines {
    state: Mutex<(Vec<String>, bool)>,
    news: Condvar,
}

impl Lines {
    fn follow(pipe: impl Read + Send + 'static) -> Arc<Lines> {
        let lines = Arc::new(Lines::default());
        let ours = Arc::clone(&lines);
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                ours.state.lock().unwrap().0.push(line);
                ours.news.notify_all();
            }
            ours.state.lock().unwrap().1 = true;
            ours.news.notify_all();
        });
        lines
    }

    /// The first answer of `find` to a line; `None` when there is none in time or to come.
    fn find<T>(&self, mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        let end = Instant::now() + DEADLINE;
        let mut seen = 0;
        let mut state = self.state.lock().unwrap();
        loop {
            while seen < state.0.len() {
                if let Some(found) = find(&state.0[seen]) {
                    return Some(found);
                }
                seen += 1;
            }
            let left = end.saturating_duration_since(Instant::now());
            if state.1 || left.is_zero() {
                return None;
            }
            state = self.news.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Everything, once the pipe is closed.
    fn text(&self) -> String {
        self.find::<()>(|_| None);
        self.so_far()
    }

    fn so_far(&self) -> String {
        let state = self.state.lock().unwrap();
        state.0.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A running process of the program. Killed when it is dropped; what it logged is shown if the test
/// fails.
#[derive(Debug)]
pub(crate) struct Program {
    name: String,
    child: Child,
    stdout: Arc<Lines>,
    stderr: Arc<Lines>,
}

impl Program {
    /// Starts it in `folder`. `name` is what it is called when a test fails.
    pub(crate) fn start(name: &str, folder: &Path, words: &[&str]) -> Program {
        Program::follow(name, &mut command(folder, words)).expect("the program starts")
    }

    /// As [`start`](Self::start), by way of another program, which `before` names with its
    /// arguments.
    pub(crate) fn start_within(
        before: &[&str],
        name: &str,
        folder: &Path,
        words: &[&str],
    ) -> Program {
        let direct = command(folder, words);
        let mut command = Command::new(before[0]);
        command.args(&before[1..]).arg(direct.get_program());
        command.args(direct.get_args()).current_dir(folder);
        for (key, value) in direct.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command.stdin(Stdio::null());
        Program::follow(name, &mut command).expect("the program starts")
    }

    /// Starts another program with `words` parted by spaces; `None`, and a word of it, if it is not
    /// installed.
    pub(crate) fn tool(name: &str, words: &str) -> Option<Program> {
        Program::tool_with(name, &words.split_whitespace().collect::<Vec<_>>())
    }

    /// As [`tool`](Self::tool), with words in which there may be spaces.
    pub(crate) fn tool_with(name: &str, words: &[&str]) -> Option<Program> {
        let mut command = Command::new(name);
        command.args(words).stdin(Stdio::null());
        match Program::follow(name, &mut command) {
            Ok(program) => Some(program),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                not_installed(name);
                None
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }

    fn follow(name: &str, command: &mut Command) -> io::Result<Program> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdout = Lines::follow(child.stdout.take().unwrap());
        let stderr = Lines::follow(child.stderr.take().unwrap());
        Ok(Program {
            name: name.to_owned(),
            child,
            stdout,
            stderr,
        })
    }

    /// Waits for its first line of standard output.
    pub(crate) fn first_line(&self) -> String {
        let line = self.stdout.find(|line| Some(line.to_owned()));
        line.unwrap_or_else(|| panic!("{} printed nothing", self.name))
    }

    /// What it printed to standard output so far.
    pub(crate) fn printed(&self) -> String {
        self.stdout.so_far()
    }

    /// Waits for a line of the log that `find` has an answer to.
    pub(crate) fn logged<T>(&self, what: &str, find: impl FnMut(&str) -> Option<T>) -> T {
        let found = self.stderr.find(find);
        found.unwrap_or_else(|| panic!("{} did not log {what}", self.name))
    }

    /// Has it logged this so far?
    pub(crate) fn has_logged(&self, what: &str) -> bool {
        self.stderr.so_far().contains(what)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the process is there");
    }

    /// Kills what it has started, and then the program, as the end of a control group does.
    pub(crate) fn kill_all(&mut self) {
        let parent = self.child.id().to_string();
        let processes = std::fs::read_dir("/proc").expect("processes");
        for process in processes.flatten() {
            let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            // Behind the name, which may have blanks: the state, and the parent (proc_pid_stat(5)).
            let mut fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
            let name = process.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            if let (Some(found), Some(number)) = (fields.nth(2), number)
                && found == parent
            {
                let pid = Pid::from_raw(number).expect("a process");
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        self.kill();
    }

    /// Ends it as a crash does: nothing is told to anybody.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the process is there");
        self.child.wait().expect("it is our child");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status;
            }
            assert!(Instant::now() < end, "{} does not end", self.name);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it has ended by itself; returns exit code, standard output and standard error.
    pub(crate) fn finish(&mut self) -> Output {
        Output {
            status: self.wait(),
            stdout: self.stdout.text().into_bytes(),
            stderr: self.stderr.text().into_bytes(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Errors say that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- log of {}\n{}---", self.name, self.stderr.text());
        }
    }
}
