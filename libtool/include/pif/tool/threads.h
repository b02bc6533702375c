// How many threads a tool may have: --threads, or the cores that it may use (pif/machine/limits.h).
#pragma once

namespace CLI {
class App;
}

namespace pif::tool {

inline constexpr unsigned kThreadsMax = 1024;  // of --threads

// --threads N, 1 to kThreadsMax; 0 if it is not given. For Job::threads. Parsing writes to `threads`, which outlives
// that.
void add_threads_option(CLI::App& app, unsigned& threads);

}  // namespace pif::tool
