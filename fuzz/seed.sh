#!/bin/sh
# Fills fuzz/corpus with what the repository has: configurations, the examples
# of the manual, captures, and the patterns and sketches of the tests.
set -e
cd "$(dirname "$0")/.."
corpus=fuzz/corpus
mkdir -p $corpus/language $corpus/captures $corpus/patterns $corpus/router
cp crates/lang/corpus/* conf/*.click conf/examples/*.click $corpus/language
cp conf/*.pcap $corpus/captures
awk -v dir=$corpus/router '
    /^```click/ { name = dir "/" ++n; next }
    /^```/ { close(name); name = ""; next }
    name != "" { print > name }' docs/elements/*.md
grep -ho '"[^"]*"' crates/kit/src/classify/tests.rs crates/wire/src/sketch/tests.rs |
    tr -d '"' | awk -v dir=$corpus/patterns '
    { name = dir "/" NR; printf "%s\n%c%s", $0, 0, "E....wwww@....udpp" > name; close(name) }'
