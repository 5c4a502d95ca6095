//! Tests of `parser.rs`.

use super::*;

#[test]
fn errors_point_at_the_character() {
    for (text, at, part) in [
        ("", 0, "of graphs: wl), found the end of the text"),
        ("foo(1)", 0, "of graphs: wl), found `foo`"),
        ("linear; ", 8, "found the end"),
        ("linear, precomputed()", 20, "the name of a view of kernel values"),
        ("chi2(0)", 5, "a factor (a positive number, or `auto`), found `0`"),
        ("sigmoid(1)", 9, "expected `,`"),
        ("gauss(l3, 1)", 6, "a distance (l1, l2, chi2, hellinger), found `l3`"),
        ("rbf 1", 4, "expected `,`, `on`, `;` or the end, found `1`"),
        ("wd on all", 3, "expected `(` and what the kernel needs, as in `wd(3)`, found `on`"),
        ("rbf(1", 5, "expected `)`, found the end"),
        ("rbf()", 4, "expected a width (a positive number, `auto` or `deviation`), found `)`"),
        ("laplace(deviation)", 8, "expected a width (a positive number, or `auto`), found"),
        ("rbf(1|-2)", 6, "found `-2`"),
        ("rbf(1e999)", 4, "found `1e999`"),
        ("rbf(2^2000)", 4, "found `2^2000`"),
        ("rbf(2^0.5)", 6, "an integer exponent"),
        ("rbf(-2^2..-2^4)", 4, "a positive base"),
        ("rbf(1..1e18)", 4, "more than 1000000 steps"),
        ("rbf(3..1)", 4, "goes upwards"),
        ("rbf(2^1..3^2)", 4, "one base"),
        ("poly(0..3)", 5, "an integer from 1 to 20"),
        ("poly(1..1e18)", 8, "found `1e18`"),
        ("poly(2, -1)", 8, "an offset"),
        ("poly(2.5)", 5, "found `2.5`"),
        ("linear all", 7, "expected `,`, `on`, `;` or the end, found `all`"),
        ("linear on x3", 10, "expected a scope"),
        ("linear on all, rbf(1)", 15, "after `;`"),
        ("linear on cols()", 15, "expected a column"),
        ("linear on cols(0)", 15, "count from 1"),
        ("linear on cols(a, 5-2)", 18, "goes upwards"),
        ("linear on cols(99999999999999999999)", 15, "count from 1"),
        ("linear on cols(a (b))", 17, "goes in"),
        ("linear on cols(\"é, b)", 15, "never closed"),
        ("linear on cols(\"é\" b)", 19, "expected `)`, found `b`"),
        ("linear on bands(0)", 16, "a number of bands"),
        ("spectrum(0)", 9, "an integer from 1 to 64"),
        ("spectrum(3, 2)", 12, "an alphabet (dna, rna, protein, free), found `2`"),
        ("mismatch(3)", 10, "`,` and a number of mismatches"),
        ("mismatch(2..3, 2)", 9, "fewer mismatches than letters"),
        ("wd(1..20, 1001)", 10, "a shift"),
        ("wd(3, 1, latin)", 9, "an alphabet"),
        ("alignment(pam30)", 10, "a scoring (blosum62, pam50), found `pam30`"),
        ("alignment(pam50, -1)", 17, "a cost"),
        ("wl(21)", 3, "an integer from 0 to 20"),
        ("paper on all", 6, "expected `;` or the end"),
        ("bank foo", 5, "a named bank (auto, paper)"),
    ] {
        match parse(text) {
            Err(Error::Syntax { at: got, expected, .. }) => {
                assert!(got == at && expected.contains(part), "{text}: {got} {expected}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(parse(&"linear;".repeat(10_000)).is_err());
}
