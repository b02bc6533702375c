#include "memory/mapping.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "pif/base/assert.h"
#include "pif/component/bus_error.h"
#include "pif/tool/exit_code.h"

namespace pif::tool {
namespace {

// A line that is put together without taking memory; what does not fit is left out.
class Line {
 public:
  void add(std::string_view text) {
    const std::size_t some = std::min(text.size(), sizeof(text_) - 1 - used_);  // 1: for the line's end
    std::copy_n(text.data(), some, text_ + used_);
    used_ += some;
  }
  void add(std::uint64_t number) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
    add({digits, static_cast<std::size_t>(end - digits)});
  }
  void add_path_of(int file) {
    Line link;
    link.add("/proc/self/fd/");
    link.add(static_cast<std::uint64_t>(file));
    link.text_[link.used_] = 0;
    char path[1024];
    const ssize_t size = ::readlink(link.text_, path, sizeof(path));
    add(size > 0 ? std::string_view(path, static_cast<std::size_t>(size)) : "a mapped file");
  }
  bool has(std::string_view text) const { return std::string_view(text_, used_).find(text) != std::string_view::npos; }
  void print() {
    text_[used_++] = '\n';
    (void)!::write(STDERR_FILENO, text_, used_);
  }

 private:
  char text_[2048];
  std::size_t used_ = 0;
};

}  // namespace

// All mappings of the process, and its handler of their faults.
class LostPages {
 public:
  static void add(Mapping* mapping) {
    const Held held;
    mapping->next_ = first_;
    if (first_ != nullptr) first_->before_ = mapping;
    first_ = mapping;
  }
  static void remove(Mapping* mapping) {
    const Held held;
    (mapping->before_ != nullptr ? mapping->before_->next_ : first_) = mapping->next_;
    if (mapping->next_ != nullptr) mapping->next_->before_ = mapping->before_;
  }
  static void install(const std::string& program) {
    program_[program.copy(program_, sizeof(program_) - 1)] = 0;
    struct sigaction ours {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO;
    PIF_ASSERT(::sigaction(SIGBUS, &ours, &before_) == 0);
  }

 private:
  // The handler waits for it, too: whoever has it touches no mapping, so it is another thread.
  struct Held {
    Held() {
      while (is_held_.test_and_set(std::memory_order_acquire)) continue;
    }
    ~Held() { is_held_.clear(std::memory_order_release); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
  };

  // Only calls that a handler may make.
  static void on_bus_error(int signal, siginfo_t* info, void* context) {
    if (component::is_fault(*info)) end_if_mapped(static_cast<const std::byte*>(info->si_addr));
    component::pass_on(before_, signal, info, context);
  }
  static void end_if_mapped(const std::byte* at) {
    const Held held;
    for (const Mapping* mapping = first_; mapping != nullptr; mapping = mapping->next_) {
      const auto bytes = mapping->bytes();
      if (at < bytes.data() || at >= bytes.data() + bytes.size()) continue;
      explain(mapping->file_, static_cast<std::uint64_t>(at - bytes.data()));
      ::_exit(static_cast<int>(ExitCode::kFailed));
    }
  }
  static void explain(int file, std::uint64_t offset) {
    char byte = 0;
    const ssize_t got = ::pread(file, &byte, 1, static_cast<off_t>(offset));
    const char* const why = got < 0 ? ::strerrordesc_np(errno) : nullptr;
    Line line;
    line.add(program_);
    line.add(": ");
    line.add_path_of(file);
    line.add(got == 0 ? " ends before byte " : got < 0 ? ": cannot read byte " : ": there is no room for byte ");
    line.add(offset);
    if (got == 0) line.add(", which it had: was it cut off while it was in use?");
    if (got == 0 && !line.has(" (deleted)")) line.add(" Run pif fsck");  // which does not see files without a name
    if (got < 0) line.add(": ");
    if (got < 0) line.add(why != nullptr ? why : "unknown error");
    if (got < 0) line.add(": the kernel's log (dmesg) says more of its disk");
    line.print();
  }

  // Of the process, because a signal's handler is.
  static inline std::atomic_flag is_held_;
  static inline Mapping* first_ = nullptr;
  static inline char program_[64] = {};
  static inline struct sigaction before_ {};
};

Mapping::Mapping(int file, std::span<std::byte> bytes) : file_(file), bytes_(bytes) { LostPages::add(this); }

Mapping::~Mapping() {
  LostPages::remove(this);
  ::munmap(bytes_.data(), bytes_.size());
}

Result<std::unique_ptr<Mapping>> Mapping::make(int file, std::size_t size, bool writable) {
  PIF_ASSERT(size > 0);
  void* const at = ::mmap(nullptr, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return fail_errno(errno, "cannot map a file");
  (void)::madvise(at, size, MADV_RANDOM);  // the kernel's read-ahead is off: read_ahead.h
  return std::unique_ptr<Mapping>(new Mapping(file, {static_cast<std::byte*>(at), size}));
}

void end_process_at_lost_pages(const std::string& program) { LostPages::install(program); }

}  // namespace pif::tool
