//! The program and its proxies from outside: real sockets on loopback, real processes.

mod cli;
mod client_program;
mod demo;
mod endpoint;
mod layering;
mod memory;
mod proxy_associations;
mod proxy_http;
mod proxy_publish;
mod proxy_resets;
mod proxy_socks;
mod proxy_stop;
mod proxy_udp;
mod quiet_address;
mod real;
mod repro_processes;
mod setup;
mod sim;
mod world;
