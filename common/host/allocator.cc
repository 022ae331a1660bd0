// Settings of jemalloc, the allocator of all programs; linked into each (cmake/Tollgate.cmake).
// oversize_threshold: blocks of 1 MiB and more return to the system when they are freed, so that
// the memory of the process follows the memory that it uses (gateway.memory_budget_bytes).
// narenas: a process has few threads that allocate much; more arenas would only keep more memory.
// background_thread: what was freed returns within seconds also where nothing is allocated.
extern "C" {
const char* malloc_conf =
    "oversize_threshold:1048576,narenas:4,background_thread:true,max_background_threads:1,"
    "dirty_decay_ms:5000,muzzy_decay_ms:0";
}
