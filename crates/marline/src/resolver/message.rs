//! A question for the addresses of a name, and what answers it (RFC 1035, RFC 3596).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ring::rand::{SecureRandom, SystemRandom};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, RCODE, TYPE};

/// Most names on the way from one to its addresses; resolvers follow about as many.
const MAX_ALIASES: usize = 16;

/// One question, with an id that nobody can guess.
#[derive(Debug)]
pub(super) struct Question {
    id: u16,
    name: String,
    kind: TYPE,
    bytes: Vec<u8>,
}

/// What a server says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The addresses; none where the name has none of that kind.
    Addresses(Vec<IpAddr>),
    /// The answer was cut off.
    Truncated,
    /// There is no such name, or the server cannot tell.
    Refused(String),
}

impl Question {
    /// Asks for the addresses of one kind, `TYPE::A` or `TYPE::AAAA`.
    ///
    /// # Errors
    /// `name` cannot be asked for.
    pub(super) fn new(name: &str, kind: TYPE) -> Result<Self, String> {
        let mut id = [0; 2];
        // Without randomness TLS fails anyway, and with a message.
        let _ = SystemRandom::new().fill(&mut id);
        Self::with_id(u16::from_ne_bytes(id), name, kind)
    }

    fn with_id(id: u16, name: &str, kind: TYPE) -> Result<Self, String> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let asked = Name::new(name).map_err(|error| error.to_string())?;
        let (qtype, qclass) = (QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN));
        let mut packet = Packet::new_query(id);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        let question = simple_dns::Question::new(asked, qtype, qclass, false);
        packet.questions.push(question);
        let bytes = packet.build_bytes_vec();
        Ok(Self {
            id,
            name: name.to_owned(),
            kind,
            bytes: bytes.map_err(|error| error.to_string())?,
        })
    }

    /// What is sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What a message answers to this question; `None` where it answers another, or is damaged.
    pub(super) fn answered(&self, message: &[u8]) -> Option<Answer> {
        let packet = Packet::parse(message).ok()?;
        let asked = Name::new(&self.name).ok()?;
        let repeats = matches!(&packet.questions[..], [question]
            if question.qname == asked
                && question.qtype == QTYPE::TYPE(self.kind)
                && question.qclass == QCLASS::CLASS(CLASS::IN));
        if packet.id() != self.id || !packet.has_flags(PacketFlag::RESPONSE) || !repeats {
            return None;
        }
        if packet.has_flags(PacketFlag::TRUNCATION) {
            return Some(Answer::Truncated);
        }
        Some(match packet.rcode() {
            RCODE::NoError => Answer::Addresses(self.addresses(&packet, asked)),
            RCODE::NameError => Answer::Refused("there is no such name".to_owned()),
            other => Answer::Refused(format!("it answers {other:?}")),
        })
    }

    /// The addresses that a message gives, also by the names that the one stands for.
    fn addresses(&self, packet: &Packet<'_>, asked: Name<'_>) -> Vec<IpAddr> {
        let mut owner = &asked;
        for _ in 0..MAX_ALIASES {
            let records = packet.answers.iter().filter(|record| record.name == *owner);
            let mut records = records.filter(|record| record.class == CLASS::IN);
            let Some(alias) = records.find_map(|record| match &record.rdata {
                RData::CNAME(alias) => Some(&alias.0),
                _ => None,
            }) else {
                break;
            };
            owner = alias;
        }
        let records = packet.answers.iter().filter(|record| record.name == *owner);
        let found = records.filter_map(|record| match (&record.rdata, self.kind) {
            (RData::A(a), TYPE::A) => Some(Ipv4Addr::from(a.address).into()),
            (RData::AAAA(aaaa), TYPE::AAAA) => Some(Ipv6Addr::from(aaaa.address).into()),
            _ => None,
        });
        found.filter(|ip: &IpAddr| !ip.is_unspecified()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, AAAA, CNAME};

    fn record<'a>(name: &'a str, rdata: RData<'a>) -> ResourceRecord<'a> {
        ResourceRecord::new(Name::new(name).unwrap(), CLASS::IN, 60, rdata)
    }

    fn a(last: u8) -> RData<'static> {
        RData::A(A {
            address: Ipv4Addr::new(192, 0, 2, last).into(),
        })
    }

    fn alias(of: &str) -> RData<'_> {
        RData::CNAME(CNAME(Name::new(of).unwrap()))
    }

    fn question() -> Question {
        Question::with_id(7, "Server.example.", TYPE::A).unwrap()
    }

    /// An answer to `question`, after `change`.
    fn answer(question: &Question, change: impl FnOnce(&mut Packet<'_>)) -> Option<Answer> {
        let mut packet = Packet::parse(question.bytes()).unwrap().into_reply();
        change(&mut packet);
        question.answered(&packet.build_bytes_vec_compressed().unwrap())
    }

    fn addresses(last: &[u8]) -> Option<Answer> {
        let ip = |last: &u8| IpAddr::from([192, 0, 2, *last]);
        Some(Answer::Addresses(last.iter().map(ip).collect()))
    }

    #[test]
    fn a_question_is_as_rfc_1035_has_it() {
        let bytes = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x06Server\x07example\0\0\x01\0\x01";
        assert_eq!(question().bytes(), bytes);
        let six = Question::new("server.example", TYPE::AAAA).unwrap();
        assert_eq!(six.bytes()[six.bytes().len() - 4..], [0, 28, 0, 1]);
        let names: Vec<Vec<u8>> = (0..3)
            .map(|_| Question::new("a.example", TYPE::A).unwrap().bytes)
            .collect();
        assert!(
            names[0] != names[1] || names[1] != names[2],
            "ids are random"
        );
        assert!(Question::new(&"a.".repeat(200), TYPE::A).is_err());
    }

    #[test]
    fn addresses_are_those_of_the_name_and_what_it_stands_for() {
        let question = question();
        let found = answer(&question, |packet| {
            packet.answers = vec![
                record("b.example", a(2)),
                record("SERVER.example", alias("a.example")),
                record("evil.example", a(66)),
                record("a.example", alias("b.example")),
                record("b.example", a(3)),
                record("b.example", RData::AAAA(AAAA { address: 1 })),
            ];
        });
        assert_eq!(found, addresses(&[2, 3]));
        // A circle of aliases ends.
        let found = answer(&question, |packet| {
            packet.answers = vec![
                record("server.example", alias("a.example")),
                record("a.example", alias("server.example")),
            ];
        });
        assert_eq!(found, addresses(&[]));
    }

    #[test]
    fn what_answers_another_question_is_no_answer() {
        let question = question();
        let full = |packet: &mut Packet<'_>| packet.answers.push(record("server.example", a(1)));
        assert_eq!(answer(&question, full), addresses(&[1]));
        type Change = fn(&mut Packet<'_>);
        let changes: [Change; 5] = [
            |packet| packet.set_id(8),
            |packet| packet.remove_flags(PacketFlag::RESPONSE),
            |packet| packet.questions.clear(),
            |packet| packet.questions[0].qname = Name::new_unchecked("other.example"),
            |packet| packet.questions[0].qtype = QTYPE::TYPE(TYPE::AAAA),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let changed = answer(&question, |packet| {
                full(packet);
                change(packet);
            });
            assert_eq!(changed, None, "change {index}");
        }
    }

    #[test]
    fn what_was_cut_off_and_what_a_server_refuses_are_told_apart() {
        let question = question();
        let cut = answer(&question, |it| it.set_flags(PacketFlag::TRUNCATION));
        assert_eq!(cut, Some(Answer::Truncated));
        let none = answer(&question, |it| *it.rcode_mut() = RCODE::NameError);
        let expected = "there is no such name".to_owned();
        assert_eq!(none, Some(Answer::Refused(expected)));
    }

    proptest! {
        #[test]
        fn no_message_is_a_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..600),
            head in any::<bool>(),
        ) {
            let question = question();
            if head && bytes.len() > question.bytes().len() {
                bytes[..question.bytes().len()].copy_from_slice(question.bytes());
                // A response with two answers.
                (bytes[2], bytes[7]) = (0x81, 2);
            }
            let _ = question.answered(&bytes);
        }
    }
}
