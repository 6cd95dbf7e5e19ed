//! A client and a server for asyncio, over the library `marline`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::{
    Accepted, AllowList, Client, ClientOptions, ConnectionString, FlowOptions, Incomings, Packets,
    Path, ServerOptions,
};
use pyo3::exceptions::{PyConnectionError, PyOSError, PyStopAsyncIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_async_runtimes::tokio::{future_into_py, get_runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex as Turn;

use crate::buffer::with_bytes;

type Awaitable<'py> = PyResult<Bound<'py, PyAny>>;

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn broken(error: impl std::fmt::Display) -> PyErr {
    PyConnectionError::new_err(error.to_string())
}

fn copied(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    with_bytes(object, <[u8]>::to_vec)
}

/// The key of one end. The other end knows it by its public half; there are no certificates.
///
/// >>> import marline
/// >>> marline.Identity.generate().public_key.startswith("marline-pub:")
/// True
#[pyclass(module = "marline", frozen)]
#[derive(Debug)]
pub struct Identity(marline::Identity);

impl Identity {
    fn another(&self) -> PyResult<marline::Identity> {
        marline::Identity::from_secret_text(&self.0.secret_text()).map_err(wrong)
    }
}

#[pymethods]
impl Identity {
    /// A new one.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        marline::Identity::generate().map(Self).map_err(wrong)
    }

    /// Reads a key file, as `marline identity` writes it.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let loaded = marline::Identity::load(&path);
        loaded
            .map(Self)
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Writes a key file, which must not be there yet.
    fn save_new(&self, path: PathBuf) -> PyResult<()> {
        let saved = self.0.save_new(&path);
        saved.map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// The public half, which the other end is given.
    #[getter]
    fn public_key(&self) -> String {
        self.0.public_key().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<marline.Identity {}>", self.0.public_key())
    }
}

/// A path from an interface's name, an address, or a dict with either and more.
fn path(object: &Bound<'_, PyAny>) -> PyResult<Path> {
    let of_text = |text: String| match text.parse::<IpAddr>() {
        Ok(address) => Path::address(address),
        Err(_) => Path::interface(text),
    };
    let Ok(dict) = object.cast::<PyDict>() else {
        return object.extract::<String>().map(of_text);
    };
    let (mut path, mut name, mut cost, mut standby) = (None, None, None, false);
    for (key, value) in dict {
        match key.extract::<String>()?.as_str() {
            "interface" => path = Some(Path::interface(value.extract::<String>()?)),
            "address" => {
                path = Some(Path::address(
                    value.extract::<String>()?.parse().map_err(wrong)?,
                ))
            }
            "name" => name = Some(value.extract::<String>()?),
            "cost" => cost = Some(value.extract::<u8>()?),
            "standby" => standby = value.extract()?,
            other => {
                return Err(PyValueError::new_err(format!(
                    "a path has no key `{other}`; it has interface or address, name, cost, standby"
                )));
            }
        }
    }
    let path =
        path.ok_or_else(|| PyValueError::new_err("a path has an interface or an address"))?;
    let path = name.into_iter().fold(path, Path::named);
    let path = cost.into_iter().fold(path, Path::cost);
    Ok(if standby { path.standby() } else { path })
}

/// A connection to a server over all paths: `async with marline.connect(…) as session`.
///
/// `server` is a connection string, as the server prints it. `paths` are names of interfaces,
/// addresses of this host, or dicts with `interface` or `address`, and `name`, `cost`, `standby`.
/// Raises ConnectionError if there is no session after `timeout` seconds.
#[pyfunction]
#[pyo3(signature = (server, identity, paths, *, timeout = 10.0))]
pub fn connect(
    server: &str,
    identity: &Identity,
    paths: Vec<Bound<'_, PyAny>>,
    timeout: f64,
) -> PyResult<Connection> {
    let server: ConnectionString = server.parse().map_err(wrong)?;
    let paths: Vec<Path> = paths.iter().map(path).collect::<PyResult<_>>()?;
    let timeout = Duration::try_from_secs_f64(timeout).map_err(wrong)?;
    let options = ClientOptions::new(&server, identity.another()?, paths);
    Ok(Connection(Arc::new(ConnectionState {
        timeout,
        options: Mutex::new(Some(options)),
        client: Mutex::new(None),
    })))
}

struct ConnectionState {
    timeout: Duration,
    options: Mutex<Option<ClientOptions>>,
    client: Mutex<Option<Arc<Client>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What :func:`connect` answers.
#[pyclass(module = "marline", frozen)]
pub struct Connection(Arc<ConnectionState>);

#[pymethods]
impl Connection {
    fn __aenter__<'py>(&self, py: Python<'py>) -> Awaitable<'py> {
        let state = self.0.clone();
        future_into_py(py, async move {
            let options = locked(&state.options).take();
            let options =
                options.ok_or_else(|| broken("it was opened before: call connect again"))?;
            let client = Arc::new(Client::start(options).map_err(wrong)?);
            *locked(&state.client) = Some(client.clone());
            match client.connect(state.timeout).await {
                Ok(session) => Ok(Session(Arc::new(Handle {
                    session,
                    _incomings: None,
                }))),
                Err(error) => {
                    client.stop("no session in time").await;
                    Err(broken(error))
                }
            }
        })
    }

    #[pyo3(signature = (*_error))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        _error: &Bound<'py, pyo3::types::PyTuple>,
    ) -> Awaitable<'py> {
        let client = locked(&self.0.client).take();
        future_into_py(py, async move {
            if let Some(client) = client {
                client.stop("done").await;
            }
            Ok(false)
        })
    }
}

/// A server: `async with marline.serve(…) as server`, then `async for session in server`.
///
/// `listen` are addresses with ports (0 is any); `allow` are the public keys of clients, or
/// the file that has them.
#[pyfunction]
#[pyo3(signature = (listen, identity, allow))]
pub fn serve(
    listen: Vec<String>,
    identity: &Identity,
    allow: &Bound<'_, PyAny>,
) -> PyResult<Server> {
    let listen = listen
        .iter()
        .map(|text| text.parse::<SocketAddr>().map_err(wrong));
    let listen = listen.collect::<PyResult<Vec<_>>>()?;
    let allow = match allow.extract::<Vec<String>>() {
        Ok(keys) if !allow.is_instance_of::<pyo3::types::PyString>() => {
            let keys = keys.iter().map(|key| key.parse().map_err(wrong));
            AllowList::from_keys(keys.collect::<PyResult<Vec<_>>>()?)
        }
        _ => AllowList::load(&allow.extract::<PathBuf>()?).map_err(wrong)?,
    };
    let options = ServerOptions::new(listen, identity.another()?, allow);
    Ok(Server(Arc::new(ServerState {
        options: Mutex::new(Some(options)),
        server: Mutex::new(None),
    })))
}

struct ServerState {
    options: Mutex<Option<ServerOptions>>,
    server: Mutex<Option<marline::Server>>,
}

/// What :func:`serve` answers.
#[pyclass(module = "marline", frozen)]
pub struct Server(Arc<ServerState>);

impl Server {
    fn running(&self) -> PyResult<marline::Server> {
        let server = locked(&self.0.server).clone();
        server.ok_or_else(|| broken("the server does not run: use it in `async with`"))
    }
}

#[pymethods]
impl Server {
    fn __aenter__<'py>(slf: Bound<'py, Self>) -> Awaitable<'py> {
        let state = slf.get().0.clone();
        let this = slf.clone().unbind();
        future_into_py(slf.py(), async move {
            let options = locked(&state.options).take();
            let options =
                options.ok_or_else(|| broken("it was started before: call serve again"))?;
            let server = marline::Server::bind(options);
            let server = server.map_err(|error| PyOSError::new_err(error.to_string()))?;
            *locked(&state.server) = Some(server);
            Ok(this)
        })
    }

    #[pyo3(signature = (*_error))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        _error: &Bound<'py, pyo3::types::PyTuple>,
    ) -> Awaitable<'py> {
        let server = locked(&self.0.server).take();
        future_into_py(py, async move {
            if let Some(server) = server {
                server.stop("the server ends").await;
            }
            Ok(false)
        })
    }

    /// What clients connect by.
    #[getter]
    fn connection_string(&self) -> PyResult<String> {
        let server = self.running()?;
        let addresses = server.local_addrs().iter();
        let addresses = addresses.map(|address| address.to_string().parse().map_err(wrong));
        let addresses = addresses.collect::<PyResult<Vec<_>>>()?;
        let string = ConnectionString::new(server.public_key(), addresses).map_err(wrong)?;
        Ok(string.to_string())
    }

    /// The addresses that it listens at.
    #[getter]
    fn addresses(&self) -> PyResult<Vec<String>> {
        let server = self.running()?;
        let addresses = server.local_addrs().iter();
        Ok(addresses.map(ToString::to_string).collect())
    }

    fn __aiter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// The next client's session.
    fn __anext__<'py>(&self, py: Python<'py>) -> Awaitable<'py> {
        let server = self.running()?;
        future_into_py(py, async move {
            let incomings = server.accept().await;
            let incomings = incomings.ok_or_else(|| PyStopAsyncIteration::new_err(()))?;
            Ok(Session(Arc::new(Handle {
                session: incomings.handle().clone(),
                _incomings: Some(incomings),
            })))
        })
    }
}

struct Handle {
    session: marline::Session,
    /// While it is there, the client may open flows.
    _incomings: Option<Incomings>,
}

/// A session between a client and a server. Either end opens flows, the other one accepts them:
/// `await session.accept()`, or `async for flow in session`.
#[pyclass(module = "marline", frozen)]
pub struct Session(Arc<Handle>);

fn options(priority: Option<u8>, scheduler: Option<&str>) -> PyResult<FlowOptions> {
    let mut options = FlowOptions::default();
    if let Some(priority) = priority {
        options.priority = priority;
    }
    options.scheduler = match scheduler {
        Some(name) => Some(name.parse().map_err(wrong)?),
        None => None,
    };
    Ok(options)
}

impl Session {
    fn next<'py>(&self, py: Python<'py>, at_end: fn(marline::Closed) -> PyErr) -> Awaitable<'py> {
        let handle = self.0.clone();
        future_into_py(py, async move {
            loop {
                let (_, accepted) = handle.session.accept().await.map_err(at_end)?;
                let flow = match accepted {
                    Accepted::Stream(stream) => Python::attach(|py| {
                        Stream::of(stream)
                            .into_pyobject(py)
                            .map(|one| one.into_any().unbind())
                    }),
                    Accepted::Packets(packets) => Python::attach(|py| {
                        let packets = Messages(Arc::new(packets));
                        packets.into_pyobject(py).map(|one| one.into_any().unbind())
                    }),
                    // Dropped, and so refused: there is nothing for them here.
                    Accepted::Blocks(_) | Accepted::Objects(_) => continue,
                };
                return flow;
            }
        })
    }
}

#[pymethods]
impl Session {
    /// Opens a stream of bytes.
    #[pyo3(signature = (*, priority = None, scheduler = None))]
    fn open_stream(&self, priority: Option<u8>, scheduler: Option<&str>) -> PyResult<Stream> {
        let _inside = get_runtime().enter();
        let stream = self.0.session.open_stream(options(priority, scheduler)?);
        stream.map(Stream::of).map_err(broken)
    }

    /// Opens a flow of messages, each worth sending for `lifetime` seconds.
    #[pyo3(signature = (*, lifetime = None, ordered = false, priority = None, scheduler = None))]
    fn open_packets(
        &self,
        lifetime: Option<f64>,
        ordered: bool,
        priority: Option<u8>,
        scheduler: Option<&str>,
    ) -> PyResult<Messages> {
        let _inside = get_runtime().enter();
        let mut options = options(priority, scheduler)?;
        options.ordered = ordered;
        let lifetime = lifetime.map(Duration::try_from_secs_f64).transpose();
        options.lifetime = lifetime.map_err(wrong)?;
        let packets = self.0.session.open_packets(options).map_err(broken)?;
        Ok(Messages(Arc::new(packets)))
    }

    /// The next flow that the other end opens: a Stream or Packets.
    fn accept<'py>(&self, py: Python<'py>) -> Awaitable<'py> {
        self.next(py, broken)
    }

    fn __aiter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> Awaitable<'py> {
        self.next(py, |_| PyStopAsyncIteration::new_err(()))
    }

    /// Its paths: state by name.
    #[getter]
    fn paths(&self) -> std::collections::BTreeMap<String, String> {
        let session = &self.0.session;
        let names = session.path_names().into_iter();
        let states = names.filter_map(|(id, name)| {
            let state = session.path_state(id)?;
            Some((name, format!("{state:?}").to_lowercase()))
        });
        states.collect()
    }

    /// Ends it for both ends.
    #[pyo3(signature = (reason = "done"))]
    fn close(&self, reason: &str) {
        self.0.session.close(0, reason);
    }
}

/// A stream of bytes in both directions. It is reset when the object goes; `close` ends it in
/// order.
#[pyclass(module = "marline", frozen)]
pub struct Stream {
    read: Arc<Turn<marline::ReadHalf>>,
    write: Arc<Turn<marline::WriteHalf>>,
}

/// Most bytes that one read takes (64 KiB): what waits comes in several.
const MOST_READ: usize = 64 << 10;

impl Stream {
    fn of(stream: marline::Stream) -> Self {
        let (read, write) = stream.into_split();
        Self {
            read: Arc::new(Turn::new(read)),
            write: Arc::new(Turn::new(write)),
        }
    }
}

#[pymethods]
impl Stream {
    /// Up to `most` bytes, as soon as there are some; none at the end.
    #[pyo3(signature = (most = MOST_READ))]
    fn read<'py>(&self, py: Python<'py>, most: usize) -> Awaitable<'py> {
        let read = self.read.clone();
        future_into_py(py, async move {
            let mut buffer = vec![0; most.clamp(1, MOST_READ)];
            let count = read.lock().await.read(&mut buffer).await?;
            buffer.truncate(count);
            Python::attach(|py| Ok(PyBytes::new(py, &buffer).unbind()))
        })
    }

    /// Exactly this number of bytes, or EOFError.
    fn read_exactly<'py>(&self, py: Python<'py>, count: usize) -> Awaitable<'py> {
        let read = self.read.clone();
        future_into_py(py, async move {
            let mut buffer = Vec::new();
            let mut read = read.lock().await;
            // What is asked for is not set aside before it comes.
            let got = (&mut *read)
                .take(count as u64)
                .read_to_end(&mut buffer)
                .await?;
            if got < count {
                let why = format!("the stream ended after {got} of {count} bytes");
                return Err(pyo3::exceptions::PyEOFError::new_err(why));
            }
            Python::attach(|py| Ok(PyBytes::new(py, &buffer).unbind()))
        })
    }

    /// Writes all of it; waits while the session has no room.
    fn write<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> Awaitable<'py> {
        let (data, write) = (copied(data)?, self.write.clone());
        future_into_py(py, async move {
            write.lock().await.write_all(&data).await?;
            Ok(())
        })
    }

    /// Nothing more is written; what was written still arrives.
    fn close<'py>(&self, py: Python<'py>) -> Awaitable<'py> {
        let write = self.write.clone();
        future_into_py(py, async move {
            write.lock().await.shutdown().await?;
            Ok(())
        })
    }
}

/// A flow of messages.
#[pyclass(module = "marline", name = "Packets", frozen)]
pub struct Messages(Arc<Packets>);

#[pymethods]
impl Messages {
    /// Sends a message; waits while the flow has no room.
    fn send<'py>(&self, py: Python<'py>, message: &Bound<'py, PyAny>) -> Awaitable<'py> {
        let (message, packets) = (copied(message)?, self.0.clone());
        future_into_py(py, async move {
            packets.send(message.into()).await?;
            Ok(())
        })
    }

    /// The next message, or None when there are no more.
    fn receive<'py>(&self, py: Python<'py>) -> Awaitable<'py> {
        let packets = self.0.clone();
        future_into_py(py, async move {
            let message = packets.recv().await;
            Python::attach(|py| Ok(message.map(|bytes| PyBytes::new(py, &bytes).unbind())))
        })
    }
}

/// Adds the module's classes and functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Identity>()?;
    module.add_class::<Connection>()?;
    module.add_class::<Server>()?;
    module.add_class::<Session>()?;
    module.add_class::<Stream>()?;
    module.add_class::<Messages>()?;
    module.add_function(wrap_pyfunction!(connect, module)?)?;
    module.add_function(wrap_pyfunction!(serve, module)?)
}
