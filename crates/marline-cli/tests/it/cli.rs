//! The command line: wrong usage, help, exit codes. Cases without files of their own are in `cli/`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

#[test]
fn every_case_behaves_as_written() {
    trycmd::TestCases::new().case("tests/it/cli/*.trycmd");
}

/// Runs the program in `folder`; returns its exit code, standard output and standard error.
fn marline(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_marline"))
        .args(words)
        .current_dir(folder)
        .env("MARLINE_LOG", "error")
        .env("XDG_CONFIG_HOME", folder)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_key_is_made_once_shown_often_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (code, made, _) = marline(folder, &["identity", "new"]);
    assert_eq!(code, 0);
    assert!(made.starts_with("marline-pub:"), "{made}");
    let file = folder.join("marline/identity");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    assert_eq!(
        marline(folder, &["identity", "show"]),
        (0, made.clone(), String::new())
    );
    let words = [
        "identity",
        "show",
        "--address",
        "vpn.example.com",
        "--address",
        "[2001:db8::1]:9",
    ];
    let (_, string, _) = marline(folder, &words);
    assert!(string.starts_with("marline://"), "{string}");
    assert!(
        string.ends_with("@vpn.example.com:4433,[2001:db8::1]:9\n"),
        "{string}"
    );
    let (_, json, _) = marline(folder, &["identity", "show", "--json"]);
    assert!(
        json.contains(&format!("\"public_key\": \"{}\"", made.trim())),
        "{json}"
    );

    let (code, _, error) = marline(folder, &["identity", "new"]);
    assert_eq!(code, 1);
    assert!(error.contains("never overwritten"), "{error}");
    assert_eq!(marline(folder, &["identity", "show"]).1, made);
}

#[test]
fn an_unusable_key_file_is_named_with_the_mend() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (code, _, error) = marline(folder, &["identity", "show", "none"]);
    assert_eq!(code, 1);
    assert!(
        error.contains("none: no such file") && error.contains("marline identity new"),
        "{error}"
    );

    marline(folder, &["identity", "new", "key"]);
    std::fs::set_permissions(folder.join("key"), PermissionsExt::from_mode(0o644)).unwrap();
    let (code, _, error) = marline(folder, &["identity", "show", "key"]);
    assert_eq!(code, 1);
    assert!(
        error.contains("644") && error.contains("chmod 600 key"),
        "{error}"
    );

    let (code, _, error) = marline(folder, &["identity", "show", "key", "--address", "host:0"]);
    assert_eq!(code, 2);
    assert!(error.contains("--address"), "{error}");
}

#[test]
fn help_takes_100_columns_at_most() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["client", "server", "doctor client", "paths add", "status"] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let (_, help, _) = marline(folder.path(), &words);
        assert!(help.contains("Usage: marline"), "{help}");
        let long = help.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{command}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_marline"))
        .args(["identity", "new", "key"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
