// Files with parity of which something belongs to this LFS, and of which its catalogue has nothing; and those of which
// this LFS keeps the length, and has less than the directory knows. The PIF Server lists all files, and what is missing
// is made anew (component_mend.h). One thread.
#pragma once

#include <deque>
#include <optional>

#include "scrub/component_mend.h"
#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubMissing {
 public:
  // All outlive it.
  ScrubMissing(Keeping& keeping, ComponentMend& mend, Rebuild::Ask ask, RateLimit& rate);

  // From the first file on.
  void start(ScrubPass& pass);
  // Once per turn, until it is over.
  void advance();
  bool is_over() const { return is_over_; }
  Time next_deadline() const;

 private:
  using One = proto::ListLostReply::One;
  void list();
  void listed(const Result<net::Packet>& reply);
  void take(const proto::ListLostReply& page);
  [[nodiscard]] bool is_lost(const One& file) const;
  void mend(const One& file);
  void report(const One& file, const std::string& what, ComponentMend::Outcome outcome, const Error& error);
  void give_up(const std::string& why);

  LfsContext& context_;
  ComponentMend& mend_;
  const Rebuild::Ask ask_;
  RateLimit& rate_;
  ScrubPass* pass_ = nullptr;
  std::deque<One> queue_;
  std::uint64_t after_ = 0;
  bool has_more_ = false;
  bool is_listing_ = false;
  bool is_over_ = true;
  Time next_try_{};
  Time patience_{};  // of the server
};

}  // namespace pif::lfs
