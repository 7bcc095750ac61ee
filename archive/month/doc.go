// Package month is what a sealed month is made of: its lines, traces and objects in Zstandard archives that the stock zstd
// and tar read, a manifest, and an index by which one row or one object is taken out in a millisecond.
//
// Write makes a part beside, Compare reads it back and holds every byte against that of which it was made, Open reads
// a part, Check tells whether it is whole. What is deleted when, and what is signed, is package archive's; FORMAT.md has
// every byte and the order.
//
// It promises that a part which was cut, emptied or changed is damage with the name of its file, and never fewer rows: the
// length of each file is held against the manifest when it is opened, each frame against its checksum when it is read,
// each object against its name.
package month
