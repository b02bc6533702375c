#pragma once

#include <memory>
#include <vector>

#include "pif/kv/store.h"

namespace pif::kv {

// The bytes of a memory store, which outlive the process that "crashed": make a new store over the same state to
// restart. Only committed transactions are in it.
struct MemoryState;
// tables: their number, all empty. copy: another one, with what is committed in this one.
std::shared_ptr<MemoryState> make_memory_state(unsigned tables);
std::shared_ptr<MemoryState> copy_memory_state(const MemoryState& state);
// A store over the state, which both keep; one at a time. Its tables are the state's.
std::unique_ptr<Store> open_memory(std::shared_ptr<MemoryState> state);

}  // namespace pif::kv
