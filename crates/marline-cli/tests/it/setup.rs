//! `marline setup` as a process, into a staged root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `marline setup` for a user with a narrow umask; exit code, standard output and standard
/// error.
fn setup(root: &Path, words: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new("sh")
        .args(["-c", "umask 077; exec \"$@\"", "-"])
        .args([env!("CARGO_BIN_EXE_marline"), "setup"])
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
fn a_client_of_a_flag_is_in_the_list_with_what_it_is_granted_and_setup_can_be_repeated() {
    let root = tempfile::tempdir().unwrap();
    let key = setup_key(&root.path().join("other"));
    let client = format!("down=20mbit,publish=tcp:8443 {key} van in Turin");
    let words = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "--allow-client",
        &client,
    ];
    let server = root.path().join("server");
    let (code, _, said) = setup(&server, &words);
    assert_eq!(code, 0, "{said}");
    let list = server.join("etc/marline/clients");
    let text = fs::read_to_string(&list).unwrap();
    assert_eq!(text.lines().last(), Some(client.as_str()));

    // The services' user finds its files, whatever the umask was.
    for (name, mode) in [
        ("etc/marline", 0o755),
        ("etc/systemd/system", 0o755),
        ("etc/marline/clients", 0o644),
        ("etc/marline/server.toml", 0o644),
        ("etc/marline/identity", 0o600),
    ] {
        let found = server.join(name).metadata().unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}");
    }

    fs::remove_file(server.join("etc/marline/server.toml")).unwrap();
    let (code, _, said) = setup(&server, &words);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("stands in"), "{said}");
    assert_eq!(fs::read_to_string(&list).unwrap(), text);
}

/// A client's key.
fn setup_key(folder: &Path) -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_marline"))
        .args(["identity", "new"])
        .arg(folder.join("identity"))
        .output()
        .unwrap();
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_key_is_printed_where_the_service_cannot_be_installed() {
    let root = tempfile::tempdir().unwrap();
    // A file where the units' folder would be.
    fs::create_dir(root.path().join("etc")).unwrap();
    fs::write(root.path().join("etc/systemd"), "").unwrap();
    let words = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "--advertise",
        "127.0.0.1:9",
    ];
    let (code, string, said) = setup(root.path(), &words);
    assert_eq!(code, 1, "{said}");
    assert!(string.starts_with("marline://"), "{string}");
    assert!(
        said.contains("marline doctor server") && said.contains("error: cannot write"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_is_said_before_anything_is_written() {
    for words in [
        &["client"][..],
        &["client", "marline://x"],
        &["server", "--listen", "nowhere"],
        &["server", "--allow-client", "somebody"],
        &["server", "--allow-client", "down=many marline-pub:x"],
    ] {
        let root = tempfile::tempdir().unwrap();
        let (code, out, said) = setup(root.path(), words);
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains("error: "), "{said}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "{words:?}");
    }
}
