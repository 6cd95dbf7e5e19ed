//! The configuration as the user wrote it: one struct a subcommand, filled from flags and TOML
//! under the same names.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments here are the flags' help, where brackets mean that a part may be left out"
)]

use super::keys::{Raw, keys};
use super::written::{Entry, Written};
use serde::{Deserialize, Serialize};

/// Configuration of `marline client` as it was written.
#[derive(Debug, Default, Clone, Serialize, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RawClient {
    /// Connection string that `marline server` prints: the server's address and key.
    #[arg(long, value_name = "STRING", value_parser = Written::flag)]
    pub server: Option<Written>,
    /// Key file of this client, made by `marline identity new`
    /// [default: $XDG_CONFIG_HOME/marline/identity].
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub identity: Option<Written>,
    /// A path: LOCAL[,except=NAMES][,standby][,cost=N][,budget=SIZE] [,server=HOST:PORT]
    /// [,carrier=auto|quic|tcp][,tcp-cc=NAME][,name=NAME], where LOCAL is an interface, a source
    /// address or `any`; or what interfaces are known by, however they are called today: `wwan*`,
    /// usb:1-1.4, a MAC address mac:02:1e:10:1f:00:00, driver:cdc_mbim, or `all`, of which
    /// `except=docker0+veth*` leaves some out. Each that fits is a path at that cost, and they
    /// share the budget. A path that costs more than others carries what these do not carry in
    /// time. One that has carried its budget, such as 20GB, stands by until the month is over. Its
    /// carrier is QUIC, or TLS over TCP where the network blocks UDP, unless you choose; tcp-cc is
    /// TCP's congestion control, such as bbr. Give it once for each path [default: any].
    #[arg(long, value_name = "PATH", value_parser = Written::flag)]
    pub path: Vec<Written>,
    /// File that keeps what paths with a budget have carried, or `off` [default:
    /// $XDG_STATE_HOME/marline/usage.toml]. Clients may share it: a path's budget is then that of
    /// all of them, up to what each carries in ten seconds.
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub usage: Option<Written>,
    /// Address of the proxy (SOCKS5 and HTTP CONNECT), or `off`; beyond loopback it needs a
    /// password, or --socks-open [default: 127.0.0.1:1080].
    #[arg(long, value_name = "IP:PORT", value_parser = Written::flag)]
    pub socks: Option<Written>,
    /// User name that the proxy demands.
    #[arg(long, value_name = "NAME", value_parser = Written::flag)]
    pub socks_user: Option<Written>,
    /// File whose first line is the password that the proxy demands; nobody but its owner
    /// may read it.
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub socks_password_file: Option<Written>,
    /// Let the proxy serve everybody who reaches an address of it that is not loopback,
    /// without a password: on or off [default: off].
    #[arg(long, value_name = "on|off", value_parser = Written::flag, num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    pub socks_open: Option<Written>,
    /// Address that programs are told to send their datagrams to (BND.ADDR in the answer to UDP
    /// ASSOCIATE), where they reach the proxy's host by another address than its own, such as
    /// behind address translation [default: the one that they have connected to].
    #[arg(long, value_name = "IP", value_parser = Written::flag)]
    pub socks_udp_address: Option<Written>,
    /// Carry TCP connections as objects, TLS records and HTTP responses, which are planned whole:
    /// `off`, `auto` (those to ports of HTTP, HTTPS and others that speak TLS) or `on` [default:
    /// off]. Live entries have an option of this name for video frames.
    #[arg(long, value_name = "WHICH", value_parser = Written::flag)]
    pub objects: Option<Written>,
    /// A forward: tcp|udp:LISTEN=HOST:PORT[,scheduler=SCHEDULER]
    /// [,priority=0..7][,lifetime=TIME][,ordered][,objects]. TIME is how long a datagram is worth
    /// sending, 3s by default. Give it once for each forward.
    #[arg(long, value_name = "FORWARD", value_parser = Written::flag)]
    pub forward: Vec<Written>,
    /// Publish a service behind this client at a port of the server: tcp|udp:PORT=HOST:PORT, first
    /// the server's port, which its --allow-publish must name, then the service, as this client
    /// reaches it. The server can open connections to what is published here, and to nothing
    /// else. With ,live or ,latency=TIME a port of UDP is carried as a live entry, in order and
    /// within that latency, for a studio that calls. In a --config, read again on SIGHUP. Give it
    /// once for each port.
    #[arg(long, value_name = "PORT=HOST:PORT[,live]", value_parser = Written::flag)]
    pub publish: Vec<Written>,
    /// A live entry:
    /// udp://[IP]:PORT[,name=NAME][,latency=TIME][,target=RATE]
    /// [,deadline=TIME][,reliability=P][,objects=off|auto|on]
    /// [,scheduler=SCHEDULER][,priority=0..7]. What local programs send there
    /// (MPEG-TS, RTP, SRT, RIST) goes to the server's --live of the same name, in order, at most
    /// the latency budget later than the paths take. With objects=auto, frames of RTP and PES
    /// packets of MPEG-TS are planned whole; objects=on does so with whatever comes. Give it once
    /// for each entry.
    #[arg(long, value_name = "LIVE", value_parser = Entry::flag)]
    pub live: Vec<Entry>,
    /// Latency budget of live entries that name none [default: 300ms].
    #[arg(long, value_name = "TIME", value_parser = Written::flag)]
    pub latency: Option<Written>,
    /// Deadline of video frames, such as 80ms: the RTP packets of a frame go as one block, coded so
    /// that it is whole by then as surely as --reliability says. For live entries that name none
    /// [default: datagrams go one by one].
    #[arg(long, value_name = "TIME", value_parser = Written::flag)]
    pub deadline: Option<Written>,
    /// Probability with which frames should keep their deadline, 0.5 to 0.9999 [default: 0.98].
    #[arg(long, value_name = "P", value_parser = Written::flag)]
    pub reliability: Option<Written>,
    /// Rate that live entries which name none need, such as 10mbps, or `auto`: what is sent to
    /// them. Only what the paths carry beyond it is spent on copies, and you are told when they
    /// carry less. Not for entries with a deadline or objects=on [default: auto].
    #[arg(long, value_name = "RATE", value_parser = Written::flag)]
    pub target: Option<Written>,
    /// Carry IP packets: make this network interface, whose packets the server's --tun passes on.
    /// Needs root or CAP_NET_ADMIN [default name: marline0].
    #[arg(long, value_name = "NAME", value_parser = Written::flag, num_args = 0..=1, require_equals = true,
        default_missing_value = marline_apps::tun::DEVICE)]
    pub tun: Option<Written>,
    /// Give the tunnel's interface its addresses and routes, and take them away in the end;
    /// otherwise you are shown the commands: on or off [default: off]. With gateway also what the
    /// networks behind this host send goes into the tunnel, by forwarding and address translation.
    /// With strict nothing else leaves this host, before there is a session and after a crash.
    /// gateway,strict is both.
    #[arg(long, value_name = "on|off|gateway|strict", value_parser = Written::flag, num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    pub tun_setup: Option<Written>,
    /// Network behind the tunnel, such as 10.1.0.0/16, or 0.0.0.0/0 and ::/0 for everything.
    /// Packets go there through the tunnel, and may come from there. Give it once for each
    /// [default: only the server's address in the tunnel].
    #[arg(long, value_name = "NET", value_parser = Written::flag)]
    pub tun_route: Vec<Written>,
    /// Network behind this host, such as 192.168.7.0/24, whose hosts the server's side knows by
    /// their own addresses, and reaches; the server allows it by --allow-prefix. Give it once for
    /// each.
    #[arg(long, value_name = "NETWORK", value_parser = Written::flag)]
    pub tun_announce: Vec<Written>,
    /// Name server behind the tunnel, such as 9.9.9.9, and the domains that it is asked for,
    /// `10.1.0.53,corp.example`, with systemd-resolved; without any, and elsewhere, for all names.
    /// With --tun-setup, until the tunnel ends. Give it once for each.
    #[arg(long, value_name = "ADDRESS[,DOMAIN...]", value_parser = Written::flag)]
    pub tun_dns: Vec<Written>,
    /// How some of the tunnel's packets are carried: what they are,
    /// [dscp=N][,proto=tcp|udp|icmp|N][,port=N[-N]][,net=NET], and how,
    /// [,scheduler=SCHEDULER][,priority=0..7] [,lifetime=TIME][,ordered|unordered]. The first that
    /// fits holds. Give it once for each rule.
    #[arg(long, value_name = "RULE", value_parser = Written::flag)]
    pub tun_rule: Vec<Written>,
    /// Scheduler of flows that choose none: NAME or NAME:KEY=VALUE:..., with stream=, packets=,
    /// blocks= or objects= before it for one kind of flow. Give it once for each kind [default:
    /// auto]. Names and keys are listed below.
    #[arg(long, value_name = "SCHEDULER", value_parser = Written::flag)]
    pub scheduler: Vec<Written>,
    /// Congestion controller of every path: bbr, bbr-gentle, cubic, cubic-hystart, new-reno, none,
    /// or fixed=RATE [default: bbr-gentle].
    #[arg(long, value_name = "NAME", value_parser = Written::flag)]
    pub congestion: Option<Written>,
    /// Large batches of packets that the kernel cuts (GSO): auto, on or off. Some drivers and
    /// hypervisors lose such batches; `auto` notices that, and sends one by one where they are lost
    /// [default: auto].
    #[arg(long, value_name = "auto|on|off", value_parser = Written::flag)]
    pub gso: Option<Written>,
    /// Most redundancy that streams may spend on repair symbols, as a share of their bytes: 0% to
    /// 400% [default: 50%; of live entries 3% and three times what the paths lose].
    #[arg(long, value_name = "PERCENT", value_parser = Written::flag)]
    pub repair_budget: Option<Written>,
    /// Serve Prometheus metrics at this address.
    #[arg(long, value_name = "IP:PORT", value_parser = Written::flag)]
    pub metrics: Option<Written>,
    /// Host name by which the metrics may be asked for, beside addresses, localhost and this host's
    /// own name. Give it once for each.
    #[arg(long, value_name = "NAME", value_parser = Written::flag)]
    pub metrics_name: Vec<Written>,
    /// Serve a page about this program at this address of this host, 127.0.0.1:9080 for example:
    /// its links, their last 24 hours, and why it is slow now. Its address with a token is logged
    /// at the start. Addresses that other hosts reach need --web-login.
    #[arg(long, value_name = "IP:PORT", value_parser = Written::flag)]
    pub web: Option<Written>,
    /// Serve the page over TLS to who knows the password in this file, which is made with a random
    /// one if there is none: for phones and other hosts, at 0.0.0.0:9080 for example.
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub web_login: Option<Written>,
    /// The page's certificate, those that lead from it to an authority, and its private key, as PEM
    /// in one file; read again when it changes [default: one of its own; browsers warn of it
    /// once, and its fingerprint is logged].
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub web_certificate: Option<Written>,
    /// Write what sessions do to files of this folder, for tools that read qlog: each packet, its
    /// acknowledgement or loss, and how paths and flows change; no content, keys or targets. Only
    /// their owner reads them, and old ones are deleted.
    #[arg(long, value_name = "DIR", value_parser = Written::flag)]
    pub qlog: Option<Written>,
    /// What all files of --qlog may have together, 1MB or more [default: 256MiB].
    #[arg(long, value_name = "SIZE", value_parser = Written::flag)]
    pub qlog_size: Option<Written>,
    /// Control socket for `marline status` and `marline paths`, or `off` [default: client.sock in
    /// $XDG_RUNTIME_DIR/marline, /run/marline (root), /run/user/UID/marline or /tmp/marline-UID;
    /// on Windows the pipe \\.\pipe\marline-USER-client].
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub control: Option<Written>,
    /// End the session after this long without any working path [default: 3min].
    #[arg(long, value_name = "TIME", value_parser = Written::flag)]
    pub idle_timeout: Option<Written>,
    /// Where the system tells what interfaces are known by [default: /sys].
    #[arg(long, value_name = "FOLDER", value_parser = Written::flag, hide = true)]
    pub sysfs: Option<Written>,
    /// Wait this long for the first session, and then end with an error. Interfaces, addresses,
    /// routes and the server's name may come while it waits [default: as long as it takes].
    #[arg(long, value_name = "TIME", value_parser = Written::flag)]
    pub wait: Option<Written>,
}

/// Configuration of `marline server` as it was written.
#[derive(Debug, Default, Clone, Serialize, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RawServer {
    /// Address to listen on, UDP and TCP. Give it once for each address [default: 0.0.0.0:4433 and
    /// [::]:4433].
    #[arg(long, value_name = "IP:PORT", value_parser = Written::flag)]
    pub listen: Vec<Written>,
    /// Take clients whose networks block UDP over TCP, at the same addresses: on or off [default:
    /// on].
    #[arg(long, value_name = "on|off", value_parser = Written::flag)]
    pub tcp: Option<Written>,
    /// The kernel's congestion control for what is sent to those clients, such as bbr or cubic
    /// [default: the system's].
    #[arg(long, value_name = "NAME", value_parser = Written::flag)]
    pub tcp_cc: Option<Written>,
    /// HOST[:PORT] at which clients reach this server, for the connection string that it prints;
    /// without a port, that of the first --listen. Give it once for each address [default: a
    /// guess].
    #[arg(long, value_name = "HOST[:PORT]", value_parser = Written::flag)]
    pub advertise: Vec<Written>,
    /// Key file of this server, made by `marline identity new`
    /// [default: $XDG_CONFIG_HOME/marline/identity].
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub identity: Option<Written>,
    /// Public key of a client that is let in, and before it what it is granted, separated by
    /// commas: down=RATE and up=RATE, what it may receive and send; allow-target=RULE in place of
    /// --allow-target, and deny-target=RULE; publish=PORTS, prefix=NETWORKS and address=IP in the
    /// tunnel. For example 'down=20mbit,up=5mbit,publish=tcp:8443 marline-pub:... van in Turin',
    /// the name last. In a --config, read again on SIGHUP. Give it once for each client.
    #[arg(long, value_name = "[OPTIONS ]KEY", value_parser = Written::flag)]
    pub allow_client: Vec<Written>,
    /// File with the clients that are let in, one a line as for --allow-client, instead of it; read
    /// again on SIGHUP. `marline clients` lists and changes it.
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub allow_clients_file: Option<Written>,
    /// File that keeps when each client was seen last, for `marline clients list`, or `off`
    /// [default: $XDG_STATE_HOME/marline/seen.toml].
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub clients_state: Option<Written>,
    /// Target that clients may reach: *, HOST, *.DOMAIN, IP or CIDR, each with [:PORT[-PORT]]. Only
    /// an address rule within a private range opens that range, and only an address rule opens this
    /// host's own addresses, that in the tunnel and those of --advertise among them [default: *,
    /// which is every other public address].
    #[arg(long, value_name = "RULE", value_parser = Written::flag)]
    pub allow_target: Vec<Written>,
    /// Target that clients may not reach, whatever is allowed; written as for --allow-target.
    #[arg(long, value_name = "RULE", value_parser = Written::flag)]
    pub deny_target: Vec<Written>,
    /// Prefix of a NAT64 translator in this host's network, such as 2001:db8:64::/96, or `off`:
    /// IPv6 targets with it are judged by the IPv4 address in them, too, as with 64:ff9b::/96. Give
    /// it once for each [default: what the resolver shows for ipv4only.arpa (RFC 7050)].
    #[arg(long, value_name = "PREFIX", value_parser = Written::flag)]
    pub nat64: Vec<Written>,
    /// Ports of this host at which a client may publish services behind it:
    /// KEY=tcp|udp:PORT[-PORT][+tcp|udp:PORT[-PORT]]..., for example
    /// marline-pub:...=tcp:8443+udp:9000-9010. Whoever reaches such a port reaches the service.
    /// `publish=PORTS` before a client's key in the list of clients is the same. In a --config,
    /// read again on SIGHUP. Give it once for each client [default: none].
    #[arg(long, value_name = "KEY=PORTS", value_parser = Written::flag)]
    pub allow_publish: Vec<Written>,
    /// Address of this host at which clients' ports are published. Give it once for each address
    /// [default: all].
    #[arg(long, value_name = "IP", value_parser = Written::flag)]
    pub publish_address: Vec<Written>,
    /// Where live entries of clients end: udp://HOST:PORT[,name=NAME]. Give it once for each name.
    #[arg(long, value_name = "LIVE", value_parser = Entry::flag)]
    pub live: Vec<Entry>,
    /// Pass on clients' IP packets: make this network interface. What they may reach is as for
    /// --allow-target. Needs root or CAP_NET_ADMIN [default name: marline0].
    #[arg(long, value_name = "NAME", value_parser = Written::flag, num_args = 0..=1, require_equals = true,
        default_missing_value = marline_apps::tun::DEVICE)]
    pub tun: Option<Written>,
    /// Give the tunnel's interface its addresses, switch on forwarding and address translation, and
    /// undo it in the end; otherwise you are shown the commands: on, off, or no-nat [default: off].
    #[arg(long, value_name = "on|off|no-nat", value_parser = Written::flag, num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    pub tun_setup: Option<Written>,
    /// Networks from which clients get addresses, one of each family or one
    /// [default: 10.77.0.0/24 and an IPv6 network of this server's own].
    #[arg(long, value_name = "NETS", value_parser = Written::flag)]
    pub tun_pool: Option<Written>,
    /// File that keeps which client has which address, or `off` [default:
    /// $XDG_STATE_HOME/marline/tunnel.toml]. Beside it, with .undo added to its name, what
    /// --tun-setup switched on is noted until it is switched off.
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub tun_state: Option<Written>,
    /// Networks behind a client of the tunnel, with its key, such as
    /// marline-pub:...=192.168.7.0/24+fd07::/64. What hosts there may reach, --allow-target says.
    /// `prefix=NETWORKS` before a client's key in the list of clients is the same. In a --config,
    /// read again on SIGHUP. Give it once for each client.
    #[arg(long, value_name = "KEY=NETWORKS", value_parser = Written::flag)]
    pub allow_prefix: Vec<Written>,
    /// Let clients reach each other through the tunnel: on or off [default: off].
    #[arg(long, value_name = "on|off", value_parser = Written::flag, num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    pub tun_peers: Option<Written>,
    /// Most flows that one client may have open at a time [default: 1024].
    #[arg(long, value_name = "COUNT", value_parser = Written::flag)]
    pub max_flows: Option<Written>,
    /// Threads that sessions run on, 1 to 256; all of a client's are on one of them. `auto` is one
    /// for each core that this program may use. On other systems than Linux there is one
    /// [default: auto].
    #[arg(long, value_name = "COUNT|auto", value_parser = Written::flag)]
    pub workers: Option<Written>,
    /// Scheduler of what is sent to clients: NAME or NAME:KEY=VALUE:..., with stream=, packets=,
    /// blocks= or objects= before it for one kind of flow. Give it once for each kind [default:
    /// auto]. Names and keys are listed below.
    #[arg(long, value_name = "SCHEDULER", value_parser = Written::flag)]
    pub scheduler: Vec<Written>,
    /// Congestion controller of every path: bbr, bbr-gentle, cubic, cubic-hystart, new-reno, none,
    /// or fixed=RATE [default: bbr-gentle].
    #[arg(long, value_name = "NAME", value_parser = Written::flag)]
    pub congestion: Option<Written>,
    /// Large batches of packets that the kernel cuts (GSO): auto, on or off. Some drivers and
    /// hypervisors lose such batches; `auto` notices that, and sends one by one where they are lost
    /// [default: auto].
    #[arg(long, value_name = "auto|on|off", value_parser = Written::flag)]
    pub gso: Option<Written>,
    /// Most redundancy that streams may spend on repair symbols, as a share of their bytes: 0% to
    /// 400% [default: 50%; of live entries 3% and three times what the paths lose].
    #[arg(long, value_name = "PERCENT", value_parser = Written::flag)]
    pub repair_budget: Option<Written>,
    /// Serve Prometheus metrics at this address.
    #[arg(long, value_name = "IP:PORT", value_parser = Written::flag)]
    pub metrics: Option<Written>,
    /// Host name by which the metrics may be asked for, beside addresses, localhost, this host's
    /// own name and what is advertised. Give it once for each.
    #[arg(long, value_name = "NAME", value_parser = Written::flag)]
    pub metrics_name: Vec<Written>,
    /// Serve a page about this program at this address of this host, 127.0.0.1:9080 for example:
    /// its links, their last 24 hours, and why it is slow now. Its address with a token is logged
    /// at the start. Addresses that other hosts reach need --web-login.
    #[arg(long, value_name = "IP:PORT", value_parser = Written::flag)]
    pub web: Option<Written>,
    /// Serve the page over TLS to who knows the password in this file, which is made with a random
    /// one if there is none: for phones and other hosts, at 0.0.0.0:9080 for example.
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub web_login: Option<Written>,
    /// The page's certificate, those that lead from it to an authority, and its private key, as PEM
    /// in one file; read again when it changes [default: one of its own; browsers warn of it
    /// once, and its fingerprint is logged].
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub web_certificate: Option<Written>,
    /// Write what sessions do to files of this folder, for tools that read qlog: each packet, its
    /// acknowledgement or loss, and how paths and flows change; no content, keys or targets. Only
    /// their owner reads them, and old ones are deleted.
    #[arg(long, value_name = "DIR", value_parser = Written::flag)]
    pub qlog: Option<Written>,
    /// What all files of --qlog may have together, 1MB or more [default: 256MiB].
    #[arg(long, value_name = "SIZE", value_parser = Written::flag)]
    pub qlog_size: Option<Written>,
    /// Control socket for `marline status`, or `off` [default: server.sock in
    /// $XDG_RUNTIME_DIR/marline, /run/marline (root), /run/user/UID/marline or /tmp/marline-UID;
    /// on Windows the pipe \\.\pipe\marline-USER-server].
    #[arg(long, value_name = "FILE", value_parser = Written::flag)]
    pub control: Option<Written>,
    /// End a session after this long without any working path [default: 3min].
    #[arg(long, value_name = "TIME", value_parser = Written::flag)]
    pub idle_timeout: Option<Written>,
    /// Wait this long for an address of this host at which clients reach the server, and then end
    /// with an error [default: as long as it takes].
    #[arg(long, value_name = "TIME", value_parser = Written::flag)]
    pub wait: Option<Written>,
}

/// Flags win over the file; a list that is given replaces the file's.
fn list<T>(flags: Vec<T>, file: Vec<T>) -> Vec<T> {
    if flags.is_empty() { file } else { flags }
}

impl Raw for RawClient {
    const SUBCOMMAND: &'static str = "client";

    fn over(self, file: Self) -> Self {
        RawClient {
            server: self.server.or(file.server),
            identity: self.identity.or(file.identity),
            path: list(self.path, file.path),
            usage: self.usage.or(file.usage),
            socks: self.socks.or(file.socks),
            socks_user: self.socks_user.or(file.socks_user),
            socks_password_file: self.socks_password_file.or(file.socks_password_file),
            socks_open: self.socks_open.or(file.socks_open),
            socks_udp_address: self.socks_udp_address.or(file.socks_udp_address),
            objects: self.objects.or(file.objects),
            forward: list(self.forward, file.forward),
            publish: list(self.publish, file.publish),
            live: list(self.live, file.live),
            latency: self.latency.or(file.latency),
            deadline: self.deadline.or(file.deadline),
            reliability: self.reliability.or(file.reliability),
            target: self.target.or(file.target),
            tun: self.tun.or(file.tun),
            tun_setup: self.tun_setup.or(file.tun_setup),
            tun_route: list(self.tun_route, file.tun_route),
            tun_announce: list(self.tun_announce, file.tun_announce),
            tun_dns: list(self.tun_dns, file.tun_dns),
            tun_rule: list(self.tun_rule, file.tun_rule),
            scheduler: list(self.scheduler, file.scheduler),
            congestion: self.congestion.or(file.congestion),
            gso: self.gso.or(file.gso),
            repair_budget: self.repair_budget.or(file.repair_budget),
            metrics: self.metrics.or(file.metrics),
            metrics_name: list(self.metrics_name, file.metrics_name),
            web: self.web.or(file.web),
            web_login: self.web_login.or(file.web_login),
            web_certificate: self.web_certificate.or(file.web_certificate),
            qlog: self.qlog.or(file.qlog),
            qlog_size: self.qlog_size.or(file.qlog_size),
            control: self.control.or(file.control),
            idle_timeout: self.idle_timeout.or(file.idle_timeout),
            sysfs: self.sysfs.or(file.sysfs),
            wait: self.wait.or(file.wait),
        }
    }

    fn other() -> (&'static str, Vec<String>) {
        (RawServer::SUBCOMMAND, keys::<RawServer>())
    }
}

impl Raw for RawServer {
    const SUBCOMMAND: &'static str = "server";

    fn over(self, file: Self) -> Self {
        RawServer {
            listen: list(self.listen, file.listen),
            tcp: self.tcp.or(file.tcp),
            tcp_cc: self.tcp_cc.or(file.tcp_cc),
            advertise: list(self.advertise, file.advertise),
            identity: self.identity.or(file.identity),
            allow_client: list(self.allow_client, file.allow_client),
            allow_clients_file: self.allow_clients_file.or(file.allow_clients_file),
            clients_state: self.clients_state.or(file.clients_state),
            allow_target: list(self.allow_target, file.allow_target),
            deny_target: list(self.deny_target, file.deny_target),
            nat64: list(self.nat64, file.nat64),
            allow_publish: list(self.allow_publish, file.allow_publish),
            publish_address: list(self.publish_address, file.publish_address),
            live: list(self.live, file.live),
            tun: self.tun.or(file.tun),
            tun_setup: self.tun_setup.or(file.tun_setup),
            tun_pool: self.tun_pool.or(file.tun_pool),
            tun_state: self.tun_state.or(file.tun_state),
            allow_prefix: list(self.allow_prefix, file.allow_prefix),
            tun_peers: self.tun_peers.or(file.tun_peers),
            max_flows: self.max_flows.or(file.max_flows),
            workers: self.workers.or(file.workers),
            scheduler: list(self.scheduler, file.scheduler),
            congestion: self.congestion.or(file.congestion),
            gso: self.gso.or(file.gso),
            repair_budget: self.repair_budget.or(file.repair_budget),
            metrics: self.metrics.or(file.metrics),
            metrics_name: list(self.metrics_name, file.metrics_name),
            web: self.web.or(file.web),
            web_login: self.web_login.or(file.web_login),
            web_certificate: self.web_certificate.or(file.web_certificate),
            qlog: self.qlog.or(file.qlog),
            qlog_size: self.qlog_size.or(file.qlog_size),
            control: self.control.or(file.control),
            idle_timeout: self.idle_timeout.or(file.idle_timeout),
            wait: self.wait.or(file.wait),
        }
    }

    fn other() -> (&'static str, Vec<String>) {
        (RawClient::SUBCOMMAND, keys::<RawClient>())
    }
}
