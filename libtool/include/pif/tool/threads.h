// How many threads a tool may have: --threads, or the cores of its machine.
#pragma once

namespace CLI {
class App;
}

namespace pif::tool {

inline constexpr unsigned kThreadsMax = 1024;  // of --threads

// --threads N, 1 to kThreadsMax; 0 if it is not given. For Job::threads. Parsing writes to `threads`, which outlives
// that.
void add_threads_option(CLI::App& app, unsigned& threads);

// Cores that this process may use: by its affinity, and by the control groups that it is in. At least 1.
unsigned usable_cores();

}  // namespace pif::tool
