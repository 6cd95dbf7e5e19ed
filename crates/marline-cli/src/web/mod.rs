//! A page about the running program: what its links do, what they did in the last ten minutes and
//! 24 hours, and why it is slow now (docs/WEB.md).
//!
//! | file | what |
//! | --- | --- |
//! | `history.rs` | figures at two resolutions, in bounded memory |
//! | `events.rs` | what changed between two looks, in words |
//! | `why.rs` | one sentence about what is slow |
//! | `store.rs` | what all of these have seen, as JSON |
//! | `watch.rs` | looks at the program at a steady pace |
//! | `door.rs` | who may ask: |
//! | `token.rs`, `host.rs` | on this host, who knows the token in its address |
//! | `login.rs`, `tls.rs` | from others, who has logged in, over TLS |
//! | `kept.rs` | their secrets in files |
//! | `http.rs`, `answer.rs` | connections; what is answered at which address |
//! | `built/` | the page, made from `web/` of the repository |

mod answer;
mod door;
mod events;
mod history;
mod host;
mod http;
mod kept;
mod login;
mod store;
mod tls;
mod token;
mod watch;
mod why;

pub use door::Door;
pub use events::Event;
pub(crate) use events::path_key;
pub use http::serve;
pub use login::{Login, Password};
pub use store::Store;
pub use tls::{Certificate, Tls};
pub use token::Token;
pub use why::{Level, Why};
