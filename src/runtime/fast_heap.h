// A heap for programs that simulate: small blocks are taken from lists by size, without a lock, a header or a search. A
// message between two engines is some hundred blocks that live for microseconds; the general heap takes a third of a
// run. Replaces operator new and delete of the program that links it; until use_fast_heap() they are malloc and free,
// so that the program's other commands have the heap they were measured with.
// Thread: any. Bounds: a freed block is used again for blocks of its size, by the thread that freed it, and is not
// returned to the system: at most as much as was needed at once, by size. Blocks above 4 KiB are malloc's. Its memory
// is requested in huge pages, which the system gives where it has them. Sanitizers keep their own heap. Source:
// ADR-0031.
#pragma once

namespace spillway::runtime {

/// Serves small blocks from this heap from now on. False: this build has no such heap.
bool use_fast_heap();

}  // namespace spillway::runtime
