use super::CliError;

/// A runtime of one thread. Measured: spreading a session over threads costs 11–23 % more CPU and
/// adds latency.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_current_thread()
        // What comes in waits for 8 tasks' turns, not for 61 (tokio's default), beside a client
        // with hundreds of busy flows. `lab/hostile.sh turns` measures it; the value was not tuned.
        .event_interval(8)
        .enable_all()
        .build()
        .map_err(|error| CliError::runtime(format!("cannot start the async runtime: {error}")))
}
