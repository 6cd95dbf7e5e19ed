//! What the kernel reports of its congestion control: `TCP_INFO` and, of BBR, `TCP_CC_INFO`
//! (Linux, `include/uapi/linux/tcp.h` and `inet_diag.h`).

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::Kernel;
#[cfg(target_os = "linux")]
pub(super) use linux::Kernel;

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::AsFd;
    use std::sync::OnceLock;
    use std::time::Duration;

    use marline_base::Rate;
    use marline_proto::congestion::{CarrierState, Phase, View, bbr_view};
    use nix::sys::socket::GetSockOpt;
    use nix::{getsockopt_impl, libc, sockopt_impl};
    use socket2::SockRef;
    use tokio::net::TcpStream;

    /// The first words of `struct tcp_info`, as far as Linux 4.9 and everything newer has them.
    type Info = [u32; 42];
    /// Words of it. Those of segments count segments.
    const SND_MSS: usize = 4;
    const UNACKED: usize = 6;
    const SACKED: usize = 7;
    const LOST: usize = 8;
    const RETRANS: usize = 9;
    const RTT_US: usize = 17;
    const SND_SSTHRESH: usize = 19;
    const SND_CWND: usize = 20;
    const NOTSENT_BYTES: usize = 36;
    const MIN_RTT_US: usize = 37;
    /// Bytes a second; two words.
    const DELIVERY_RATE: usize = 40;
    /// Octets 4 to 7, of which the last begins with the bit that says that the rate is a lower
    /// bound, as the sender had nothing more to send.
    const FLAGS: usize = 1;
    /// A threshold that is not set.
    const NO_SSTHRESH: u32 = 0x7fff_ffff;
    /// Gains of `struct tcp_bbr_info` are in units of this.
    const BBR_UNIT: f64 = 256.0;

    sockopt_impl!(
        /// The head of `struct tcp_info`.
        TcpInfo,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        Info
    );
    sockopt_impl!(
        /// `struct tcp_bbr_info`: bandwidth (bytes/s, low and high word), smallest round-trip time
        /// (µs), gains of pacing and window.
        BbrInfo,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_CC_INFO,
        [u32; 5]
    );

    /// A connection whose congestion control can be read.
    #[derive(Debug)]
    pub(in super::super) struct Kernel {
        control: Control,
        /// The last delivery rate that was no lower bound, or a higher one that was.
        rate: Rate,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Control {
        Bbr,
        Other(&'static str),
    }

    impl Kernel {
        /// `None` where the kernel does not report it.
        pub(in super::super) fn of(stream: &TcpStream) -> Option<Self> {
            let control = match SockRef::from(stream).tcp_congestion().ok()?.as_slice() {
                name if name.starts_with(b"bbr\0") || name == b"bbr" => Control::Bbr,
                name if name.starts_with(b"cubic") => Control::Other("kernel-cubic"),
                name if name.starts_with(b"reno") => Control::Other("kernel-reno"),
                _ => Control::Other("kernel"),
            };
            let rate = Rate::ZERO;
            tells_enough().then_some(Self { control, rate })
        }

        /// The kernel's round-trip time, once it has one.
        pub(in super::super) fn rtt(stream: &TcpStream) -> Option<Duration> {
            let us = tells_enough().then(|| info(stream))??[RTT_US];
            (us > 0).then(|| Duration::from_micros(us.into()))
        }

        /// How the connection stands; `waiting` bytes have not been handed to the kernel yet.
        pub(in super::super) fn state(
            &mut self,
            stream: &TcpStream,
            waiting: usize,
        ) -> Option<CarrierState> {
            let info = info(stream)?;
            self.learn_rate(&info);
            let bytes = |segments: u32| u64::from(segments) * u64::from(info[SND_MSS]);
            let gone = info[SACKED].saturating_add(info[LOST]);
            let segments = info[UNACKED].saturating_sub(gone) + info[RETRANS];
            let bbr = match self.control {
                Control::Bbr => BbrInfo.get(&stream.as_fd()).ok(),
                Control::Other(_) => None,
            };
            let view = match (bbr, self.control) {
                (Some([low, high, min_rtt, pacing, window]), _) => {
                    let bytes_s = u64::from(high) << 32 | u64::from(low);
                    bbr_view(
                        Rate::from_bps(bytes_s.saturating_mul(8)),
                        Duration::from_micros(min_rtt.into()),
                        f64::from(pacing) / BBR_UNIT,
                        f64::from(window) / BBR_UNIT,
                    )
                }
                (None, control) => loss_based(control, &info, self.rate, bytes),
            };
            Some(CarrierState {
                view,
                window: bytes(info[SND_CWND]),
                in_flight: bytes(segments) + u64::from(info[NOTSENT_BYTES]) + waiting as u64,
            })
        }
    }

    impl Kernel {
        fn learn_rate(&mut self, info: &Info) {
            let [.., flags] = info[FLAGS].to_ne_bytes();
            let first = if cfg!(target_endian = "little") {
                0x01
            } else {
                0x80
            };
            let mut rate = [0; 8];
            rate[..4].copy_from_slice(&info[DELIVERY_RATE].to_ne_bytes());
            rate[4..].copy_from_slice(&info[DELIVERY_RATE + 1].to_ne_bytes());
            let rate = Rate::from_bps(u64::from_ne_bytes(rate).saturating_mul(8));
            if flags & first == 0 || rate > self.rate {
                self.rate = rate;
            }
        }
    }

    fn loss_based(control: Control, info: &Info, rate: Rate, bytes: impl Fn(u32) -> u64) -> View {
        let threshold = info[SND_SSTHRESH];
        View {
            name: match control {
                Control::Bbr => "kernel-bbr",
                Control::Other(name) => name,
            },
            phase: if info[SND_CWND] < threshold {
                Phase::SlowStart
            } else {
                Phase::Avoidance
            },
            window_gain: 1.0,
            pacing_gain: 1.0,
            bandwidth: (rate > Rate::ZERO).then_some(rate),
            min_rtt: Some(Duration::from_micros(info[MIN_RTT_US].into())),
            ssthresh: (threshold != NO_SSTHRESH).then(|| bytes(threshold)),
        }
    }

    fn info(stream: &TcpStream) -> Option<Info> {
        TcpInfo.get(&stream.as_fd()).ok()
    }

    /// An older kernel answers less, which must not be asked for.
    fn tells_enough() -> bool {
        static ENOUGH: OnceLock<bool> = OnceLock::new();
        *ENOUGH.get_or_init(|| {
            let name = rustix::system::uname();
            let release = name.release().to_string_lossy();
            let mut numbers = release.split(|c: char| !c.is_ascii_digit());
            let mut next = || numbers.next().and_then(|n| n.parse::<u32>().ok());
            (next(), next()) >= (Some(4), Some(9))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::carrier::socket::congestion_controls;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        #[tokio::test]
        async fn the_kernel_tells_of_every_control_that_it_has() {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            for name in congestion_controls() {
                let client = TcpStream::connect(listener.local_addr().unwrap());
                let (client, server) = tokio::join!(client, listener.accept());
                let (mut client, mut server) = (client.unwrap(), server.unwrap().0);
                // Not every user may choose every one.
                if SockRef::from(&client)
                    .set_tcp_congestion(name.as_bytes())
                    .is_err()
                {
                    continue;
                }
                let mut kernel = Kernel::of(&client).unwrap();
                let state = kernel.state(&client, 7).unwrap();
                assert!(state.view.name.starts_with("kernel"), "{state:?}");
                assert_eq!(state.in_flight, 7, "nothing was sent yet");
                // RFC 6928, less where the interface's largest packet is so large.
                assert!(state.window >= 2 * 1_000, "{state:?}");
                client.write_all(&[0; 1_000]).await.unwrap();
                server.read_exact(&mut [0; 1_000]).await.unwrap();
                assert!(Kernel::rtt(&client).unwrap() > Duration::ZERO);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::time::Duration;

    use marline_proto::congestion::CarrierState;
    use tokio::net::TcpStream;

    /// Nothing is reported here: the session controls congestion above the kernel's.
    #[derive(Clone, Copy, Debug)]
    pub(in super::super) struct Kernel;

    impl Kernel {
        pub(in super::super) fn of(_: &TcpStream) -> Option<Self> {
            None
        }

        pub(in super::super) fn rtt(_: &TcpStream) -> Option<Duration> {
            None
        }

        pub(in super::super) fn state(&mut self, _: &TcpStream, _: usize) -> Option<CarrierState> {
            None
        }
    }
}
