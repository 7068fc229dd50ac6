require(package foo, compact_config, bar);
require(library nowhere.click)
a :: A;
