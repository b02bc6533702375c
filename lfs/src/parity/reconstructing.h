// Rows of an LFS that is away, out of what this LFS keeps of their parity: frames, or pages and the other members'
// rows. And descriptors for those who compute that themselves. An LFS that has its rows, and only wants to know whether
// they are right, is told what they hash to where they cannot be rebuilt: that needs no other member.
#pragma once

#include <memory>

#include "parity/keeping.h"

namespace pif::lfs {

class Reconstructing {
 public:
  explicit Reconstructing(Keeping& keeping);

  // Answers later.
  void reconstruct(const Request& request, const proto::Reconstruct& asked);
  void attach_parity(const Request& request, const proto::AttachParity& asked);

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;

  [[nodiscard]] Result<JobPtr> prepare(const Request& request);
  [[nodiscard]] Result<net::Packet> descriptors(const Request& request);
  static bool is_in_page(const Job& job, Row parity_row);
  void begin(const JobPtr& job);
  void scan(const JobPtr& job);
  [[nodiscard]] Status take_frames(Job& job);
  void take_pages(Job& job);
  void read_frames(const JobPtr& job);
  std::optional<LfsIndex> other_absent(const Job& job) const;
  void read_pages(const JobPtr& job);
  void rebuild(const JobPtr& job);
  void cannot_rebuild(const JobPtr& job, Error why);
  void read_hashes(const JobPtr& job);
  void answer(const JobPtr& job);
  Error both_away(const Job& job, const Error& why) const;
  std::string name_of_node(const Job& job, LfsIndex lfs) const;

  Keeping& keeping_;
  LfsContext& context_;
};

}  // namespace pif::lfs
