// Rows of an LFS that is away, out of what this LFS keeps of their parity: frames, or pages and the other members'
// rows. And descriptors for those who compute that themselves. An LFS that has its rows, and only wants to know whether
// they are right, gets their hashes where they cannot be rebuilt: that needs no other member.
#pragma once

#include <memory>

#include "parity/keeping.h"

namespace pif::lfs {

class Reconstructing {
 public:
  explicit Reconstructing(Keeping& keeping);

  [[nodiscard]] Result<net::Packet> reconstruct(const Request& request, const proto::Reconstruct& asked);
  [[nodiscard]] Result<net::Packet> attach_parity(const Request& request, const proto::AttachParity& asked);

 private:
  struct Job;
  struct Answer;

  [[nodiscard]] Result<Job> job_of(const Request& request, const proto::Reconstruct& asked);
  // All of one answer comes from frames, or all from pages.
  [[nodiscard]] Result<Answer> read(Job& job);
  [[nodiscard]] Status open(Job& job);
  [[nodiscard]] Status scan(Job& job);
  static bool is_in_page(const Job& job, Row parity_row);
  [[nodiscard]] static Result<std::vector<component::Frame>> frames_of(const Job& job);
  [[nodiscard]] Result<Answer> read_frames(const Job& job);
  Range pages_of(const Job& job) const;
  [[nodiscard]] Result<Answer> read_pages(const Job& job);
  // why: of another member, whose rows are not there.
  [[nodiscard]] Result<Answer> read_without(const Job& job, Range pages, const Error& why);
  // Away from the loop; so is the next one.
  [[nodiscard]] static Result<Answer> rebuild(const Job& job, Range pages, MemberRows& others);
  [[nodiscard]] static Result<Answer> read_hashes(const Job& job, Range pages);
  [[nodiscard]] static Result<net::Packet> packet_of(const Job& job, const Answer& answer, net::Packet reply);
  std::optional<LfsIndex> other_absent(const Job& job) const;
  Error both_away(const Job& job, const Error& why) const;
  std::string name_of_node(const Job& job, LfsIndex lfs) const;

  Keeping& keeping_;
  LfsContext& context_;
};

}  // namespace pif::lfs
