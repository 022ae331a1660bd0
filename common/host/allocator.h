// Settings of the C library's allocator.
#pragma once

namespace tollgate::host {

// Large blocks return to the system when they are freed, so that the memory of the process follows
// the memory that it uses (gateway.memory_budget_bytes). By default glibc keeps blocks of up to
// 32 MiB in its heaps once one was freed, where small blocks behind them pin them down.
void ReturnLargeBlocks();

}  // namespace tollgate::host
