// Programs of users that are not on this machine: their controllers brought them. A cache of the LFS's run, in
// ROOT/programs: a start empties it, so that nothing in it has to be durable.
//
// A program is named by the hash of its content, which is computed here. Whoever asks for one gets what he himself has
// brought: a build id proves nothing, for anybody can write another program's into his own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "pif/base/clock.h"
#include "pif/base/handle.h"
#include "pif/base/result.h"
#include "pif/component/storage.h"

namespace pif::lfs {

inline constexpr std::uint64_t kProgramBytesMax = 64u << 20;   // of one
inline constexpr std::uint64_t kProgramsBytesMax = 1u << 30;   // of all, also of those that have not come whole yet;
inline constexpr std::uint64_t kUserProgramsMax = 512u << 20;  // of one user's that have not
inline constexpr std::size_t kProgramsMax = 256;

// The loop's thread only.
class Programs {
 public:
  // One that is coming. It is removed with this, unless it was whole before.
  class Arrival {
   public:
    ~Arrival();
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;
    bool is_whole() const { return file_ == nullptr; }

   private:
    friend class Programs;
    Arrival(Programs& programs, std::uint32_t uid, std::string build, std::uint64_t size);
    struct Hash;

    Programs& programs_;
    std::uint32_t uid_;
    std::string build_;
    std::uint64_t size_;
    std::uint64_t come_ = 0;
    std::string path_;
    std::unique_ptr<component::File> file_;  // null: it is whole
    std::unique_ptr<Hash> hash_;
  };

  // storage and clock outlive it. Nothing is there yet, as recovery leaves it.
  Programs(component::Storage& storage, Clock& clock, std::string folder);

  // Begins a program of `size` bytes, which is of this user and build. Where there is no room, those go that were not
  // used for longest. kTooLarge; kBusy: too much is coming at once; kNoSpace and the like. Ends before this.
  [[nodiscard]] Result<std::unique_ptr<Arrival>> begin(std::uint32_t uid, std::string build, std::uint64_t size);
  // The bytes from `at` on; the last ones make it whole: find() gives it from then on. kInvalid if they do not follow
  // those before them, or the whole is another build.
  [[nodiscard]] Status add(Arrival& arrival, std::uint64_t at, std::span<const std::byte> bytes);
  // The program that this user has brought under this build id, to read and to run. Nothing: there is none any more.
  std::optional<Handle> find(std::uint32_t uid, const std::string& build);

 private:
  using Holder = std::pair<std::uint32_t, std::string>;  // user, build
  struct Stored {
    std::uint64_t bytes = 0;
    std::set<Holder> holders;
    Time used{};
  };
  [[nodiscard]] Status check_room(std::uint32_t uid, std::uint64_t size) const;
  [[nodiscard]] Status make_room(std::uint64_t bytes);
  [[nodiscard]] Status finish(Arrival& arrival);
  [[nodiscard]] Status remove_oldest();
  std::uint64_t coming_bytes() const;
  std::string path_of(const std::string& name) const { return folder_ + '/' + name; }

  component::Storage& storage_;
  Clock& clock_;
  std::string folder_;
  std::map<std::string, Stored> stored_;  // by name
  std::uint64_t stored_bytes_ = 0;
  std::map<std::uint32_t, std::uint64_t> coming_;  // bytes that there will be, by user
  std::uint64_t arrivals_ = 0;
};

}  // namespace pif::lfs
