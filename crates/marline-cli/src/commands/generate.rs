//! `marline generate`: what packages and the documentation have beside the program, from the one
//! description of its flags and the tables of its code.

mod reference;

use super::{Cli, CliError};
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use std::io;
use std::path::{Path, PathBuf};

/// Write manual pages or completions, for packages, or the reference, for the documentation.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to write.
    what: What,
    /// Folder for the files; it is made when there is none.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// Manual pages, one a command: marline.1, marline-client.1, ...
    Man,
    /// Completions for bash, fish and zsh, under the names that these look for.
    Completions,
    /// The reference as Markdown: commands, configuration keys, schedulers, metrics, measures; and
    /// a status in full as JSON.
    Reference,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let done = match args.what {
        What::Man => man(&args.folder),
        What::Completions => completions(&args.folder),
        What::Reference => reference::write(&args.folder),
    };
    done.map_err(|error| {
        CliError::runtime(format!(
            "cannot write to {}: {error}",
            args.folder.display()
        ))
    })
}

fn man(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut command = Cli::command();
    command.build();
    pages(&command, "marline", folder)
}

/// The page of `command`, and those of its subcommands that are shown.
fn pages(command: &Command, name: &str, folder: &Path) -> io::Result<()> {
    // No date: the same program gives the same pages.
    let titled = command.clone().name(name.to_owned());
    let page = clap_mangen::Man::new(titled)
        .title(name.to_uppercase())
        .date("")
        .manual("Marline");
    let mut text = Vec::new();
    page.render(&mut text)?;
    std::fs::write(folder.join(format!("{name}.1")), text)?;
    let shown = command.get_subcommands();
    for inner in shown.filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        pages(inner, &format!("{name}-{}", inner.get_name()), folder)?;
    }
    Ok(())
}

fn completions(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut Cli::command(), "marline", folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_every_shell_a_file() {
        let folder = tempfile::tempdir().unwrap();
        man(folder.path()).unwrap();
        completions(folder.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        for name in [
            "marline.1",
            "marline-client.1",
            "marline-doctor-server.1",
            "marline-setup-client.1",
        ] {
            assert!(read(name).starts_with(".ie"), "{name}");
        }
        assert!(read("marline-client.1").contains("SOCKS5"));
        assert!(!folder.path().join("marline-generate.1").exists());
        for name in ["marline.bash", "marline.fish", "_marline"] {
            assert!(read(name).contains("tun-route"), "{name}");
        }
    }
}
