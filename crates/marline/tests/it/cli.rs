//! The command line: wrong usage, help, exit codes. The cases are in `cli/`.

#[test]
fn every_case_behaves_as_written() {
    trycmd::TestCases::new().case("tests/it/cli/*.trycmd");
}
