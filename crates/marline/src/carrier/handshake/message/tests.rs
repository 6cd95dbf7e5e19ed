use super::*;
use proptest::prelude::*;

fn session() -> impl Strategy<Value = SessionId> {
    any::<[u8; 16]>().prop_map(SessionId)
}

fn params() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..=MAX_PARAMS).prop_map(Bytes::from)
}

fn path() -> impl Strategy<Value = PathId> {
    (0..=varint::MAX).prop_map(PathId)
}

fn hello() -> impl Strategy<Value = Hello> {
    prop_oneof![
        (path(), params()).prop_map(|(path, params)| Hello::New { path, params }),
        (path(), session(), any::<[u8; 32]>()).prop_map(|(path, session, proof)| {
            Hello::Join {
                path,
                session,
                proof: Proof::from_bytes(proof),
            }
        }),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        (session(), params()).prop_map(|(session, params)| Reply::Accept { session, params }),
        (any::<u16>(), "[^\\p{Cc}]{0,100}").prop_map(|(code, reason)| Reply::Refuse {
            code: RefuseCode::from_number(code),
            reason
        }),
    ]
}

/// The bytes after the length field, which must be right.
fn body(message: Vec<u8>) -> Bytes {
    let (length, body) = message.split_first_chunk::<2>().unwrap();
    assert_eq!(usize::from(u16::from_be_bytes(*length)), body.len());
    assert!(body.len() <= MAX_MESSAGE);
    Bytes::copy_from_slice(body)
}

proptest! {
    #[test]
    fn messages_survive_their_bytes(hello in hello(), reply in reply()) {
        prop_assert_eq!(Hello::decode(&body(hello.encode())), Ok(hello));
        prop_assert_eq!(Reply::decode(&body(reply.encode())), Ok((VERSION, reply)));
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        let bytes = Bytes::from(bytes);
        let _ = Hello::decode(&bytes);
        let _ = Reply::decode(&bytes);
    }

    #[test]
    fn a_cut_or_lengthened_join_is_an_error(hello in hello(), keep in 0_usize..58) {
        if let Hello::Join { .. } = hello {
            let whole = body(hello.encode());
            prop_assert!(Hello::decode(&whole.slice(..keep)).is_err());
            let longer = [&whole[..], &[0]].concat();
            prop_assert_eq!(Hello::decode(&longer.into()), Err(DecodeError::Trailing(1)));
        }
    }

    #[test]
    fn other_versions_are_named_and_refusals_always_read(hello in hello(), version in 2_u16..) {
        prop_assert_eq!(
            Hello::decode(&body(hello.encode_as(version))),
            Err(DecodeError::Version { theirs: version })
        );
        let refuse = Reply::Refuse { code: RefuseCode::Version, reason: "no".into() };
        prop_assert_eq!(
            Reply::decode(&body(refuse.encode_as(version))),
            Ok((version, refuse))
        );
    }
}

#[test]
fn the_bytes_are_those_of_the_document() {
    let hello = Hello::New {
        path: PathId(7),
        params: Bytes::from_static(b"\xab\xcd"),
    };
    assert_eq!(
        hello.encode(),
        b"\x00\x0d\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x07\xab\xcd"
    );
    let reply = Reply::Refuse {
        code: RefuseCode::UnknownSession,
        reason: "gone".into(),
    };
    assert_eq!(reply.encode(), b"\x00\x09\x00\x01\x12\x01\x02gone");
}

#[test]
fn too_long_fields_are_refused_and_reasons_cut() {
    let hello = Hello::New {
        path: PathId(0),
        params: Bytes::from(vec![0; MAX_PARAMS + 1]),
    };
    assert_eq!(
        Hello::decode(&body(hello.encode())),
        Err(DecodeError::TooLong {
            field: "parameters",
            len: MAX_PARAMS + 1,
            max: MAX_PARAMS
        })
    );
    let reply = Reply::Refuse {
        code: RefuseCode::Full,
        reason: "é".repeat(MAX_REASON),
    };
    let (_, read) = Reply::decode(&body(reply.encode())).unwrap();
    let Reply::Refuse { reason, .. } = read else {
        panic!("{read:?}");
    };
    assert_eq!(reason, "é".repeat(MAX_REASON / 2));
}

#[test]
fn control_characters_of_a_peer_are_not_shown() {
    let reply = Reply::Refuse {
        code: RefuseCode::Full,
        reason: "\u{1b}[2Jhello\n".into(),
    };
    let (_, read) = Reply::decode(&body(reply.encode())).unwrap();
    assert_eq!(
        read,
        Reply::Refuse {
            code: RefuseCode::Full,
            reason: "\u{fffd}[2Jhello\u{fffd}".into()
        }
    );
}

#[test]
fn every_code_has_its_own_number() {
    for (code, number) in CODES {
        assert_eq!(code.number(), number);
        assert_eq!(RefuseCode::from_number(number), code);
    }
    assert_eq!(RefuseCode::from_number(7), RefuseCode::Other(7));
}
