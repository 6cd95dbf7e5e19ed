//! Errors in the words that a person reads.

use alloc::string::ToString;

use super::varints;
use crate::wire::frame_type::*;
use crate::wire::*;

fn message(datagram: &[u8]) -> alloc::string::String {
    match decode(datagram) {
        Err(error) => error.to_string(),
        Ok((_, mut frames)) => frames.find_map(Result::err).unwrap().to_string(),
    }
}

/// The error that a frame gives as the third of a datagram, at byte 12.
fn third(frame: &[u64]) -> alloc::string::String {
    let datagram = varints(&[u64::from(VERSION), 42, PING, STREAM, 4, 0, 5, 1, 2, 3, 4, 5]);
    assert_eq!(datagram.len(), 12);
    message(&[datagram, varints(frame)].concat())
}

#[test]
fn name_the_frame_the_place_and_the_fault() {
    assert_eq!(
        third(&[ACK, 0, 9, 0, 0, 3, 0, 0, 0, 0, 0, 9, 0]),
        "ACK at byte 12: range 3 reaches below packet 0"
    );
    assert_eq!(
        third(&[ACK, 0, 9, 0, 0, 0, 0, 1, 2, 0]),
        "ACK at byte 12: arrival 1 is of packet 6, which no range covers"
    );
    assert_eq!(
        third(&[STREAM_FIN, 4, 5, 100, 1]),
        "STREAM at byte 12: ends within its data"
    );
    assert_eq!(
        third(&[0x33]),
        "frame 0x33 at byte 12: no frame has this type"
    );
    assert_eq!(
        third(&[OPEN_FLOW, 4, 4]),
        "OPEN_FLOW at byte 12: kind 4 has no meaning"
    );
    assert_eq!(
        third(&[OPEN_FLOW, 4, 0, 0, 8]),
        "OPEN_FLOW at byte 12: priority is 8, at most 7 is allowed"
    );
    assert_eq!(
        third(&[PACKET_PART, 4, 0, 600, 601, 2]),
        "PACKET_PART at byte 12: the part ends at byte 602 of a message of 601 bytes"
    );
    assert_eq!(
        third(&[UNIT, 4, 0, 601, 600, 2]),
        "UNIT at byte 12: the part ends at byte 602 of a unit of 601 bytes"
    );
}

#[test]
fn name_the_header_and_parameters() {
    assert_eq!(
        message(&[7, 0]),
        "byte 0: version 7 is not spoken here, only version 1"
    );
    assert_eq!(message(&[1]), "byte 0: ends within its packet number");
    let params = |bytes: &[u8]| Params::decode(bytes).unwrap_err().to_string();
    assert_eq!(
        params(&[2, 1, 9, 2, 1, 9]),
        "byte 3: parameter max_data appears twice"
    );
    assert_eq!(
        params(&[0x20, 0, 0x20, 0]),
        "byte 2: parameter 0x20 appears twice"
    );
    assert_eq!(
        params(&[6, 2, 0, 0]),
        "byte 0: the value of parameter max_message is not exactly one integer"
    );
}
