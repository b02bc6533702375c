// A lock with modes: who may be inside beside whom is a table. Fair: nobody overtakes one who has waited for longer and
// whom he could keep waiting. Two who may be inside together do not wait for each other. One thread, the daemon's loop.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>

#include "pif/daemon/fibers.h"

namespace pif::daemon {

class ModeLock {
 public:
  static constexpr unsigned kModesMax = 16;

  // beside: [modes] bits; bit n of beside[m]: n may be held beside m. Symmetric. It outlives the lock.
  explicit ModeLock(std::span<const std::uint32_t> beside);
  // Nobody holds it or waits for it.
  ~ModeLock();
  ModeLock(const ModeLock&) = delete;
  ModeLock& operator=(const ModeLock&) = delete;

  // Gives the lock back at its end. The lock outlives it.
  class Held {
   public:
    // Holds nothing.
    Held() = default;
    // By the lock.
    Held(ModeLock& lock, unsigned mode) : lock_(&lock), mode_(mode) {}
    // other holds nothing any more.
    Held(Held&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)), mode_(other.mode_) {}
    Held& operator=(Held&& other) noexcept {
      std::swap(lock_, other.lock_);
      std::swap(mode_, other.mode_);
      return *this;
    }
    ~Held() { release(); }
    // Gives it back now, if it holds it.
    void release() {
      if (lock_ != nullptr) std::exchange(lock_, nullptr)->release(mode_);
    }
    // Whether it holds the lock.
    bool is_held() const { return lock_ != nullptr; }
    // Goes on in a mode that goes beside all that its mode goes beside: at once, and those it lets in come in.
    void relax(unsigned mode) {
      lock_->relax(mode_, mode);
      mode_ = mode;
    }

   private:
    ModeLock* lock_ = nullptr;
    unsigned mode_ = 0;
  };

  // Waits in turn, and no longer than until then: is_held() says whether it came. Called by a fiber.
  [[nodiscard]] Held acquire(Fibers& fibers, unsigned mode, Time until);
  // At once, or nothing: is_held() says.
  [[nodiscard]] Held try_acquire(unsigned mode);
  // Whether try_acquire() would get it.
  bool may_acquire(unsigned mode) const;
  // Whether anybody holds it in this mode.
  bool is_held(unsigned mode) const { return holders_[mode] > 0; }
  // Whether anybody holds it in this mode, or waits for it.
  bool is_wanted(unsigned mode) const { return holders_[mode] > 0 || waiters_[mode] > 0; }
  // Whether nobody holds it or waits.
  bool is_free() const { return waiting_.empty() && bits_of(holders_) == 0; }
  // So many wait.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    Fibers* fibers;
    Fibers::WaitId id;
    unsigned mode;
  };
  using Counts = std::array<unsigned, kModesMax>;  // by mode
  static std::uint32_t bits_of(const Counts& counts);
  bool goes(unsigned mode, unsigned other) const { return (beside_[mode] & 1u << other) != 0; }
  bool goes_beside(unsigned mode, std::uint32_t others) const { return (others & ~beside_[mode]) == 0; }
  bool leave_line(Fibers::WaitId id);
  void release(unsigned mode);
  void relax(unsigned from, unsigned to);
  void admit();

  const std::span<const std::uint32_t> beside_;
  Counts holders_{};
  Counts waiters_{};
  std::deque<Waiting> waiting_;  // the longest first
};

}  // namespace pif::daemon
