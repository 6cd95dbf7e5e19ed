//! What is left of the descriptors that the system allows a program.

/// Descriptors that connections of strangers and of local programs leave to paths and to control: a
/// path that is dialled again has four for each address of the server, and there are 16 paths, of
/// which most are up. No more than a quarter of all.
const SPARED: u64 = 64;

/// The number of a socket's descriptor.
#[cfg(unix)]
pub fn number(socket: &impl std::os::fd::AsRawFd) -> i32 {
    socket.as_raw_fd()
}

/// Descriptors have no numbers here.
#[cfg(not(unix))]
pub fn number<T>(_: &T) -> i32 {
    0
}

/// Does a descriptor of this number leave few free? The system gives the lowest free number, so all
/// below are in use.
#[cfg(unix)]
pub fn leaves_few(number: i32) -> bool {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    leaves_few_of(limit, number)
}

/// Is never the case where the system has no limit of its own.
#[cfg(not(unix))]
pub fn leaves_few(number: i32) -> bool {
    leaves_few_of(u64::MAX, number)
}

fn leaves_few_of(limit: u64, number: i32) -> bool {
    let number = u64::try_from(number).unwrap_or(0);
    number >= limit - SPARED.min(limit / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_few_and_64_of_many_are_spared() {
        for (limit, last) in [(1024, 959), (65_536, 65_471), (48, 35), (0, -1)] {
            assert!(leaves_few_of(limit, last + 1), "{limit}");
            assert!(last < 0 || !leaves_few_of(limit, last), "{limit}");
        }
        assert!(!leaves_few_of(u64::MAX, i32::MAX));
    }
}
