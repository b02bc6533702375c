// Kernels on the threads of a worker (Worker::threads()).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>

namespace pif::tool {

// f(i) for each i below `parts`, on up to `threads` threads of OpenMP; on one where the program is not compiled for it
// (-fopenmp). f is a kernel: no I/O, no messages, no locks, and no allocation but of what a long key needs. If f
// throws, one exception is thrown again when all parts have ended.
template <typename F>
void for_each_part(unsigned threads, std::size_t parts, const F& f) {
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
  threads = 1;  // ThreadSanitizer does not see how GCC's OpenMP waits
#endif
  [[maybe_unused]] const auto team = static_cast<int>(std::clamp<std::size_t>(parts, 1, std::max(threads, 1U)));
  std::atomic_flag has_thrown;
  std::exception_ptr thrown;
#ifdef _OPENMP
#pragma omp parallel for num_threads(team) schedule(dynamic, 1) if (team > 1)
#endif
  for (std::size_t i = 0; i < parts; ++i) {
    try {
      f(i);
    } catch (...) {  // nothing may leave a region
      if (!has_thrown.test_and_set()) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace pif::tool
