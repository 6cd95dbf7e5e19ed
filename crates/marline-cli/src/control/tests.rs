use super::protocol::{Outcome, Request};
use super::*;
use crate::control::status::tests::example;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Writes down what it is given.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Manage for Recorder {
    async fn status(&self) -> Status {
        example()
    }
    async fn add_path(&self, path: Path) -> Result<(), Problem> {
        self.note(format!("add {path}"));
        Ok(())
    }
    async fn remove_path(&self, name: &str) -> Result<(), Problem> {
        Err(Problem {
            message: format!("no path `{name}`"),
            hint: Some("paths: wlan0".into()),
        })
    }
    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
        self.note(format!("standby {name} {standby}"));
        Ok(())
    }
}

#[tokio::test]
async fn requests_reach_the_session_and_answers_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/control.sock");
    let socket = ControlSocket::bind(&path).await.unwrap();
    let recorder = Arc::new(Recorder::default());
    let wishes = server::Wishes::default();
    let server = tokio::spawn(server::serve(socket, Arc::clone(&recorder), wishes.clone()));

    let status = client::ask(&path, Request::Status).await.unwrap();
    assert_eq!(
        status,
        Outcome::Status {
            status: Box::new(example())
        }
    );
    let add = |path: &str| Request::PathsAdd { path: path.into() };
    assert_eq!(
        client::ask(&path, add("lo,standby")).await.unwrap(),
        Outcome::DONE
    );
    let Outcome::Done { waits: Some(waits) } =
        client::ask(&path, add("nosuch0,cost=2")).await.unwrap()
    else {
        panic!("it is said what is waited for");
    };
    assert!(
        waits.contains("no network interface `nosuch0`; there are "),
        "{waits}"
    );
    let refused = client::ask(&path, add("wlan0,stanby")).await.unwrap();
    assert!(
        matches!(refused, Outcome::Error { hint: Some(_), .. }),
        "{refused:?}"
    );
    assert_eq!(
        client::ask(&path, Request::PathsRemove { path: "x".into() })
            .await
            .unwrap(),
        Outcome::Error {
            message: "no path `x`".into(),
            hint: Some("paths: wlan0".into())
        }
    );
    let standby = Request::PathsStandby {
        path: "0".into(),
        standby: false,
    };
    assert_eq!(client::ask(&path, standby).await.unwrap(), Outcome::DONE);
    assert_eq!(
        client::ask(&path, Request::Stop).await.unwrap(),
        Outcome::DONE
    );
    assert_eq!(
        *recorder.0.lock().unwrap(),
        ["add lo,standby", "add nosuch0,cost=2", "standby 0 false"]
    );
    assert!(wishes.stop.is_cancelled());
    server.abort();
}

#[tokio::test]
async fn many_lines_on_one_connection_and_rubbish_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let socket = ControlSocket::bind(&path).await.unwrap();
    let server = tokio::spawn(server::serve(
        socket,
        Arc::new(Recorder::default()),
        server::Wishes::default(),
    ));

    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream
        .write_all(b"nonsense\n{\"version\":1,\"request\":\"stop\"}\n")
        .await
        .unwrap();
    stream
        .write_all(&[b'x'; 2 * protocol::MAX_REQUEST])
        .await
        .unwrap();
    let mut bytes = Vec::new();
    // The server closes with our bytes unread, which may show as a reset after the answers.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("not a control request"));
    assert!(lines[1].contains("done"));
    assert!(lines[2].contains("at most 4096 bytes"));
    server.abort();
}

#[tokio::test]
async fn the_socket_is_private_and_goes_with_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let socket = ControlSocket::bind(&path).await.unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(socket);
    assert!(!path.exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_dead_instances_socket_is_replaced_and_a_living_ones_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    // A listener that is closed without its file being removed: what a killed process leaves.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    assert!(matches!(
        client::ask(&path, Request::Status).await,
        Err(client::AskError::NotRunning(_))
    ));

    let first = ControlSocket::bind(&path).await.unwrap();
    let second = ControlSocket::bind(&path).await.unwrap_err();
    assert!(matches!(second, BindError::InUse(_)), "{second}");
    drop(first);
    ControlSocket::bind(&path).await.unwrap();
}

#[tokio::test]
async fn a_usual_place_that_is_somebody_elses_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("marline");
    let place = Place::Usual(ours.join("client.sock"));
    let open = async || ControlSocket::open(&place).await;
    let first = open().await.unwrap().unwrap();
    // An instance that runs is not to be overlooked.
    assert!(matches!(open().await, Err(BindError::InUse(_))));
    drop(first);
    // Others may write there: what lies there is theirs, perhaps.
    std::fs::set_permissions(&ours, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(open().await.unwrap().is_none());
    assert!(matches!(
        ControlSocket::open(&Place::Chosen(ours.join("client.sock"))).await,
        Ok(Some(_))
    ));
    // A link to a folder of ours is not that folder.
    let real = folder.path().join("real");
    std::fs::rename(&ours, &real).unwrap();
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&real, &ours).unwrap();
    assert!(open().await.unwrap().is_none());
    // Nor a link to nothing, nor a file.
    std::fs::remove_file(&ours).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", &ours).unwrap();
    assert!(open().await.unwrap().is_none());
    std::fs::remove_file(&ours).unwrap();
    std::fs::write(&ours, "").unwrap();
    assert!(open().await.unwrap().is_none());
    std::fs::remove_file(&ours).unwrap();
    assert!(open().await.unwrap().is_some());
}

#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let socket = ControlSocket::bind(&path).await.unwrap();
    let server = tokio::spawn(server::serve(
        socket,
        Arc::new(Recorder::default()),
        server::Wishes::default(),
    ));
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(UnixStream::connect(&path).await.unwrap());
    }
    let status = client::ask(&path, Request::Status).await.unwrap();
    assert!(matches!(status, Outcome::Status { .. }));
    // Sooner than a connection that asks nothing is closed anyway.
    let mut byte = [0];
    let ended = timeout(Duration::from_secs(30), silent[0].read(&mut byte));
    assert_eq!(ended.await.expect("it gave way").unwrap(), 0);
    server.abort();
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(
        ControlSocket::bind(&path).await,
        Err(BindError::NotASocket(_))
    ));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}
