// Settings of jemalloc, the allocator of all programs; linked into each (cmake/Tollgate.cmake).
// oversize_threshold: freed blocks of 1 MiB and more return to the system at once, so that the
// process's memory follows its use (gateway.memory_budget_bytes).
// narenas: few threads of a process allocate much, so more arenas would only retain more memory.
// background_thread: freed memory returns within seconds even if nothing is allocated.
extern "C" {
const char* malloc_conf =
    "oversize_threshold:1048576,narenas:4,background_thread:true,max_background_threads:1,"
    "dirty_decay_ms:5000,muzzy_decay_ms:0";
}
