//! `marline setup` as a process, into a staged root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `marline setup`; exit code, standard output and standard error.
fn setup(root: &Path, words: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_marline"))
        .arg("setup")
        .args(words)
        .arg("--root")
        .arg(root)
        .env("XDG_STATE_HOME", root)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_server_and_a_client_are_set_up_once_without_a_question() {
    let root = tempfile::tempdir().unwrap();
    let server = root.path().join("server");
    // Loopback: the doctor asks nobody else.
    let words = [
        "server",
        "--advertise",
        "127.0.0.1:9",
        "--listen",
        "127.0.0.1:0",
    ];
    let (code, string, said) = setup(&server, &words);
    assert_eq!(code, 0, "{said}");
    assert!(
        string.starts_with("marline://") && string.ends_with("@127.0.0.1:9\n"),
        "{string}"
    );
    assert!(
        said.contains("nothing was opened") && said.contains("marline doctor server"),
        "{said}"
    );
    let identity = server.join("etc/marline/identity").metadata().unwrap();
    assert_eq!(identity.permissions().mode() & 0o777, 0o600);
    let wanted = "etc/systemd/system/multi-user.target.wants/marline-server.service";
    assert!(fs::symlink_metadata(server.join(wanted)).is_ok());

    let file = server.join("etc/marline/server.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "# mine\n").unwrap();
    let (code, string, said) = setup(&server, &words);
    assert_eq!((code, string.as_str()), (2, ""));
    assert!(
        said.contains("is not overwritten") && said.contains("mv "),
        "{said}"
    );
    assert!(fs::read_to_string(&file).unwrap().ends_with("# mine\n"));

    let client = root.path().join("client");
    let string = setup(&client.join("other"), &words).1;
    let words = [
        "client",
        string.trim(),
        "--path",
        "lo",
        "--socks",
        "127.0.0.1:1",
        "--name",
        "van",
    ];
    let (code, key, said) = setup(&client, &words);
    assert_eq!(code, 0, "{said}");
    assert!(
        key.starts_with("marline-pub:") && said.contains("marline clients add"),
        "{said}"
    );
    let text = fs::read_to_string(client.join("etc/marline/client-van.toml")).unwrap();
    assert!(text.contains("\npath = [\"lo\"]\n") && text.contains("\nsocks = \"127.0.0.1:1\"\n"));
    assert!(
        client
            .join("etc/systemd/system/marline-client@.service")
            .exists()
    );
}

#[test]
fn what_is_wrong_is_said_before_anything_is_written() {
    for words in [
        &["client"][..],
        &["client", "marline://x"],
        &["server", "--listen", "nowhere"],
        &["server", "--allow-client", "somebody"],
    ] {
        let root = tempfile::tempdir().unwrap();
        let (code, out, said) = setup(root.path(), words);
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains("error: "), "{said}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "{words:?}");
    }
}
