// A right to an open file that can travel with a message: in the real world a descriptor, in a simulation an object.
#pragma once

#include <memory>
#include <utility>

namespace pif {

// Owns one file descriptor (-1: none) and closes it when it goes. Move-only; moved from, it owns none. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes over `fd`, which nobody else closes from now on. The owner closes it in reset(), when another is moved here,
  // and at the end.
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  // get(): borrowed, valid as long as it is owned here. release(): the caller's to close from now on. reset(): closes
  // it now; errors of close are dropped, so data that must last is synced before.
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Exactly one of the two is set. `object` is what a simulated storage put there, and only it knows the type.
struct Handle {
  UniqueFd fd;
  std::shared_ptr<void> object;
};

}  // namespace pif
