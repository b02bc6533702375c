#include "session/one_user.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>

namespace pif::client {

namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

// A page that fork() empties in the child: to look there costs less than to ask for the process's number. Where there
// is none to be had, children are not noticed.
OneUser::OneUser() {
  void* const page = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
    ::munmap(page, page_bytes());
    return;
  }
  char* const mark = static_cast<char*>(page);
  *mark = 1;
  mark_ = mark;
}

OneUser::~OneUser() {
  if (mark_ != nullptr) ::munmap(const_cast<char*>(mark_), page_bytes());
}

Error Use::in_child() {
  return {
      Code::kInvalid, "this connection belongs to the process that this one was forked from: connect anew here", {}};
}

Error Use::in_two_threads() {
  assert(false &&
         "a pif::Client or its Files are used by two threads at once: one thread at a time, or a Client for each");
  return {Code::kInvalid,
          "a connection or its files are used from two threads at once: one thread at a time, or a connection for each",
          {}};
}

}  // namespace pif::client
