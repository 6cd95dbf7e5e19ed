//! Questions on a terminal, each with a default.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

/// Who is asked.
pub(super) struct Asker {
    /// `None`: nobody, so that every answer is its default.
    person: Option<Person>,
}

struct Person {
    answers: Box<dyn BufRead>,
    questions: Box<dyn Write>,
}

impl Asker {
    /// Whoever sits at the terminal; nobody if there is none, or `quiet`.
    pub(super) fn of_terminal(quiet: bool) -> Self {
        let here = io::stdin().is_terminal() && io::stderr().is_terminal() && !quiet;
        Asker {
            person: here.then(|| Person {
                answers: Box::new(io::stdin().lock()),
                questions: Box::new(io::stderr()),
            }),
        }
    }

    /// Is there somebody?
    pub(super) fn is_there(&self) -> bool {
        self.person.is_some()
    }

    /// The answer as `read` understands it, asked again until it does; `default` for an empty one,
    /// and where nobody answers.
    pub(super) fn ask<T, E: Display>(
        &mut self,
        question: &str,
        default: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(Person { answers, questions }) = &mut self.person else {
            return read(default);
        };
        loop {
            let shown = match default {
                "" => String::new(),
                default => format!(" [{default}]"),
            };
            let _ = write!(questions, "{question}{shown}: ").and_then(|()| questions.flush());
            let mut line = String::new();
            // The end of the input is an answer like an empty line, and the last one.
            if answers.read_line(&mut line).unwrap_or(0) == 0 {
                return read(default);
            }
            let answer = match line.trim() {
                "" => default,
                answer => answer,
            };
            match read(answer) {
                Ok(value) => return Ok(value),
                Err(error) => {
                    let _ = writeln!(questions, "  {error}");
                }
            }
        }
    }

    /// Yes or no; `no` by default.
    pub(super) fn agrees(&mut self, question: &str) -> bool {
        let read = |answer: &str| match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            _ => Err("answer yes or no"),
        };
        self.ask(question, "no", read).unwrap_or(false)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Cursor;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shown(Arc<Mutex<Vec<u8>>>);

    impl Write for Shown {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(text)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn asker(answers: &str) -> (Asker, Shown) {
        let shown = Shown::default();
        let person = Person {
            answers: Box::new(Cursor::new(answers.to_owned())),
            questions: Box::new(shown.clone()),
        };
        let asker = Asker {
            person: Some(person),
        };
        (asker, shown)
    }

    /// Somebody who answers that.
    pub(in super::super) fn answering(answers: &str) -> Asker {
        asker(answers).0
    }

    /// Nobody.
    pub(in super::super) fn nobody() -> Asker {
        Asker { person: None }
    }

    #[test]
    fn an_answer_is_asked_for_again_until_it_is_understood() {
        let (mut asker, shown) = asker("many\n\n17\nperhaps\nYES\n");
        let number = |text: &str| text.parse::<u16>();
        assert_eq!(asker.ask("port", "4433", number), Ok(4433));
        assert_eq!(asker.ask("port", "4433", number), Ok(17));
        assert!(asker.agrees("all"));
        assert!(!asker.agrees("more"), "there are no more answers");
        let shown = String::from_utf8(shown.0.lock().unwrap().clone()).unwrap();
        assert!(shown.starts_with("port [4433]:   invalid digit"), "{shown}");
        assert!(shown.contains("all [no]:   answer yes or no\nall [no]: "));
        assert_eq!(nobody().ask("port", "9", number), Ok(9));
    }
}
