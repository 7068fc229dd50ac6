#!/bin/sh
# Fills fuzz/corpus, or the folder in the first argument, with inputs from the
# repository: configurations, examples of the manual, arguments and handlers of
# each class, captures, and patterns and sketches of the tests.
set -e
corpus=$(realpath -m "${1:-$(dirname "$0")/corpus}")
cd "$(dirname "$0")/.."
for target in language captures patterns router transform arguments control rules splitbox wasm slots; do
    mkdir -p "$corpus/$target"
done
cp crates/lang/corpus/* conf/*.click conf/examples/*.click "$corpus/language"
cp conf/*.pcap "$corpus/captures"
awk -v dir="$corpus/router" '
    /^```click/ { name = dir "/" ++n; next }
    /^```/ { close(name); name = ""; next }
    name != "" { print > name }' docs/elements/*.md
# Pairs of examples, the second of which replaces the first while packets wait; then again after a
# replacement that the router refuses at the last moment.
previous=
for file in "$corpus"/router/*; do
    case $file in *.swap) continue ;; esac
    if [ -n "$previous" ]; then
        { cat "$previous" && printf '\n%%\n' && cat "$file" &&
            printf '\nrefusal :: ExampleRefusal\n%%\n' && cat "$file"; } > "$file.swap"
    fi
    previous=$file
done
printf '%s\n' 'in -> r :: IPReassembler -> f :: IPFragmenter(100) -> q :: Queue -> Idle' \
    '> in 1.0.0.1:5 > 2.0.0.2:6 udp id 7 frag 24 len 60' '%' \
    'in -> r :: IPReassembler(HIMEM 100) -> q :: Queue(2) -> u :: Unqueue -> out' \
    '> in 1.0.0.1:5 > 2.0.0.2:6 udp id 7 frag 0+ len 44' '+ 1s' '%' \
    'in -> r :: AggregateIPFlows(FRAGMENTS true) -> q :: Queue -> Idle' \
    '> in 1.0.0.1:5 > 2.0.0.2:6 udp id 8 frag 24 len 60' > "$corpus/router/fragments"
grep -ho '"[^"]*"' crates/kit/src/classify/tests.rs crates/wire/src/sketch/tests.rs |
    tr -d '"' | awk -v dir="$corpus/patterns" '
    { name = dir "/" NR; printf "%s\n%c%s", $0, 0, "E....wwww@....udpp" > name; close(name) }'
grep -ho '"[^"]*"' crates/middlebox/src/tests.rs crates/middlebox/src/connections/tests.rs |
    tr -d '"' | awk -v dir="$corpus/rules" '
    { name = dir "/" NR; printf "add %s\nadd-stateful %s\n%cE....wwww@....udpp", $0, $0, 0 > name; close(name) }'
# Fragments of TCP to port 5000: in order, in reverse order, tiny, overlapping, too late; also of
# IPv6, with options after the fragment header.
while read -r fragments; do
    n=$((n + 1))
    { printf 'add tcp-dport 5000 drop\nadd-stateful all map ip-saddr 9.9.9.9\n\000' &&
        printf "$fragments"; } > "$corpus/rules/fragments$n"
done << 'END'
\105\000\000\054\000\007\040\000\011\006\000\000\012\000\000\001\002\000\000\002\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\000\000\000\000\061\062\063\064\377\376\375\105\000\000\034\000\007\000\003\011\006\000\000\012\000\000\001\002\000\000\002\061\062\063\064\065\066\067\070
\105\000\000\034\000\007\000\003\011\006\000\000\012\000\000\001\002\000\000\002\061\062\063\064\065\066\067\070\377\376\375\105\000\000\054\000\007\040\000\011\006\000\000\012\000\000\001\002\000\000\002\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\000\000\000\000\061\062\063\064
\105\000\000\044\000\007\040\000\011\006\000\000\012\000\000\001\002\000\000\002\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\377\376\375\105\000\000\030\000\007\000\002\011\006\000\000\012\000\000\001\002\000\000\002\000\000\000\000
\105\000\000\064\000\007\040\000\011\006\000\000\012\000\000\001\002\000\000\002\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\000\000\000\000\061\062\063\064\061\062\063\064\065\066\067\070\377\376\375\105\000\000\034\000\007\000\003\011\006\000\000\012\000\000\001\002\000\000\002\061\062\063\064\065\066\067\070
\105\000\000\034\000\007\000\003\011\006\000\000\012\000\000\001\002\000\000\002\061\062\063\064\065\066\067\070\377\376\375\377\376\375\105\000\000\054\000\007\040\000\011\006\000\000\012\000\000\001\002\000\000\002\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\000\000\000\000\061\062\063\064
\140\000\000\000\000\050\054\011\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\002\074\000\000\001\000\000\000\007\006\000\001\004\000\000\000\000\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\000\000\000\000\061\062\063\064\377\376\375\140\000\000\000\000\020\054\011\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\002\074\000\000\040\000\000\000\007\061\062\063\064\065\066\067\070
\140\000\000\000\000\020\054\011\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\002\074\000\000\040\000\000\000\007\061\062\063\064\065\066\067\070\377\376\375\140\000\000\000\000\050\054\011\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\002\074\000\000\001\000\000\000\007\006\000\001\004\000\000\000\000\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\000\000\000\000\061\062\063\064
\140\000\000\000\000\020\054\011\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\002\074\000\000\001\000\000\000\007\006\000\001\004\000\000\000\000\377\376\375\140\000\000\000\000\034\054\011\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\002\074\000\000\010\000\000\000\007\000\011\023\210\000\000\000\000\000\000\000\000\120\002\000\000\000\000\000\000
END
# Each configuration combined with the router, by links that may fit it.
for file in crates/lang/corpus/* conf/*.click conf/examples/*.click; do
    { cat "$file" && printf '\0' && cat conf/router.click && printf '\0' &&
        cat crates/lang/corpus/xform.click &&
        printf '\0a.eth1=b.eth0\nb.eth1=a.eth0\n'; } > "$corpus/transform/$(basename "$file")"
done
# Each class with the arguments and all handlers on its page.
awk -v dir="$corpus/arguments" '
    FNR == 1 { class = $2; handlers = ""; kind = ""; count = 0; while ((getline line < FILENAME) > 0) {
        if (line ~ /^## /) kind = line
        if (kind ~ /handlers/ && match(line, /^\* `[^`]*/))
            handlers = substr(line, 4, RLENGTH - 3) " 1\n" handlers
    } close(FILENAME); show("") }
    { rest = $0; while (match(rest, class "\\([^()]*\\)")) {
        show(substr(rest, RSTART + length(class) + 1, RLENGTH - length(class) - 2))
        rest = substr(rest, RSTART + RLENGTH) } }
    function show(arguments) {
        name = dir "/" class "-" ++count
        printf "%s 1 2\n%s%c%s", class, arguments, 0, handlers > name
        close(name) }' docs/elements/*.md
# Policies of SplitBox: the first byte selects the language.
for file in conf/splitbox/*.txt conf/splitbox/*.mmb conf/splitbox/*.toml; do
    case $file in *'*'*) continue ;; *.toml) n=3 ;; *.mmb) n=2 ;; *) n=0 ;; esac
    { printf "\\00$n" && cat "$file" && printf '\0E....wwww@....udpp'; } > "$corpus/splitbox/$(basename "$file")"
done
cp sdk/wasm/modules/*.wasm "$corpus/wasm/"
# A peer that fills a slot and publishes it, and one that lies about its tail.
printf '\3\1\0\74\0\1\0\1\5\0\0\100\6\74\0\10\7\0\0\0' > "$corpus/slots/good"
printf '\6\74\0\10\0\1\0\77\5\0\0\100\0\4\0\77\6\74\0\10' > "$corpus/slots/liar"
# One session on each line; its first byte selects the arguments of the socket.
while read -r session; do
    n=$((n + 1))
    printf "$session\n" > "$corpus/control/$n"
done << 'END'
?READ c.count\nread 1.class\nGET .version\nREAD 0.list\nQUIT
0WRITE q.capacity 9\r\nWRITEDATA q.capacity 2\n11WRITEUNTIL q.capacity END\n12\nEND
3READDATA x.run 3\n1 2READUNTIL x.run\n3 4\n\nREADDATA q.x 99
0CHECKREAD c.count\nCHECKWRITE c.reset\nCHECKWRITE c.count\nHELP\nCLOSE
1LLRPC c#c0044003 4\n\0\0\0\0LLRPC w#80044006 4\n1234LLRPC x
2READ c.none a b\nWRITE any.thing 1\nREAD all.run\nREAD nobody.there
3WRITE hotconfig s :: InfiniteSource -> c :: Counter -> Discard\nREAD c.count
6WRITE stop\nREAD handlers\nWRITE rt.add 10.1.0.0/16 0\nREAD rt.table
9READ s.ports\nREAD list\nWRITE w.switch 1\nWRITE arp.add 1.0.0.1 1:2:3:4:5:6
END
