// The right to one file's records: a capability that expires, and how it is renewed.
// Thread-safety: none; the thread of the LfsLinks it is used with.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "pif/access/file_parts.h"
#include "pif/base/result.h"

namespace pif::access {

class Grant {
 public:
  struct Capability {
    std::string packed;
    std::int64_t until = 0;  // wall seconds
  };
  // Gets a fresh capability from whoever gives them: a client asks the server (and waits), an LFS makes its own.
  // kStaleFile: the file is gone. Called from keep(), renew() and Requests::step(), never from inside net::Calls.
  using Renew = std::function<Result<Capability>()>;

  // parts: with a capability. Empty `renew`: the capability is somebody else's, who renews it if he wants to.
  Grant(FileParts parts, Renew renew);

  // Valid as long as this object; a renewal changes the capability in it, so nobody keeps a copy. is_borrowed(): it
  // cannot be renewed here.
  const FileParts& parts() const { return parts_; }
  const std::string& capability() const { return parts_.capability; }
  bool is_borrowed() const { return !renew_; }
  // Whether an LFS of the file is absent in its view.
  bool has_absent() const { return has_absent_; }

  // Before every operation: renews what has less than a minute left. now: wall seconds. While nobody gives a fresh one
  // (the server is down), the old one is used until it expires; then, and when the file is gone (kStaleFile), what
  // `renew` says. A borrowed one is never an error here: its LFSs refuse it.
  [[nodiscard]] Status keep(std::int64_t now) {
    if (now < renew_at_) [[likely]]
      return {};
    return renew_soon(now);
  }
  // The file's LFSs get the states and endpoints that `nodes` has, as the server says now; those are in any order, and
  // an LFS that is not among them stays as it was. Not of a file being created: all of it is made in one view. parts()
  // stays where it is, and so do its nodes.
  void set_view(std::uint64_t view, std::span<const proto::NodeInfo> nodes);
  // The next keep() renews it: whoever gave it may have forgotten what it stands for.
  void renew_next() { renew_at_ = 0; }
  // A fresh one now. kBadCapability if it is borrowed; else what `renew` says.
  [[nodiscard]] Status renew();

 private:
  void look_who_is_absent();
  [[nodiscard]] Status renew_soon(std::int64_t now);

  FileParts parts_;
  Renew renew_;
  bool has_absent_ = false;
  std::int64_t renew_at_ = 0;  // wall seconds
};

}  // namespace pif::access
