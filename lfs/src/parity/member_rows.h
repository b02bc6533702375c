// Rows of a keeper's members, as sources for pages and frames: through descriptors that their LFSs pass, or fetched by
// message, a window at a time.
// Thread-safety: none, but sources() may be used by another thread while nothing is called.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parity/kept_frames.h"
#include "parity/peers.h"
#include "pif/access/component_access.h"
#include "store/keeper.h"

namespace pif::lfs {

struct MemberOptions {
  FileLength file_length;              // rows beyond it are none
  Range records;                       // only rows of these
  std::optional<Range> parity_rows;    // instead of these two: the rows of these, which all are there
  std::uint64_t epoch = 0;             // of who asks
  bool by_message = false;             // else through descriptors where they are passed
  std::uint64_t generation = 0;        // which members must be at, if it is not 0: kRetry otherwise
  std::optional<std::size_t> without;  // this member is not asked
  CopiedMembers copied;                // instead of those that are absent; empty: none is
};

// The rows that were fetched from one member.
class FetchedRows final : public component::RowSource {
 public:
  [[nodiscard]] Status read(Row first, std::uint64_t count, std::uint64_t step, component::PackedRows& out) override;
  // Rows first, first + step, ... follow.
  void start(Row first, std::uint64_t step);
  void add(std::span<const std::uint32_t> lengths, std::span<const std::byte> bytes);
  std::uint64_t rows() const { return rows_.lengths.size(); }

 private:
  component::PackedRows rows_;
  std::vector<std::uint64_t> begins_;
  Row first_ = 0;
  std::uint64_t step_ = 1;
};

class MemberRows {
 public:
  // All but `keeper` outlive it; it outlives what runs of it.
  MemberRows(Peers& peers, component::Storage& storage, Keeper keeper, MemberOptions options);

  // Attaches to members that have rows. kInvalid, kNotFound: a member does not have the rows that the file's length
  // says; else what LFSs say. Errors name LFSs.
  // Called by a fiber, as fetch().
  [[nodiscard]] Status open(const proto::ComponentShape& shape);
  // Whether a window must be fetched before its rows are read.
  bool is_any_far() const;
  // Whether a member's rows come from copies: frames of them are there.
  bool is_copied(std::size_t member) const { return !options_.copied.empty() && options_.copied[member] != nullptr; }
  // Fetches rows of these parity rows that are to be read: all that is fetched before is gone. After open().
  [[nodiscard]] Status fetch(Range parity_rows);
  // Parity rows of which this member's rows are read.
  Range parity_rows(std::size_t member) const { return limits_[member]; }
  // By member; valid as long as this object. Null: has no rows, or is not asked.
  std::vector<component::RowSource*> sources();
  // The name of the member's LFS.
  const std::string& name_of(std::size_t member) const;

 private:
  struct Member {
    std::unique_ptr<access::ComponentAccess> access;  // null: is not asked
    std::unique_ptr<component::RowSource> near;
    FetchedRows fetched;
  };
  bool is_far(const Member& member) const { return member.access && !member.near; }
  [[nodiscard]] Status take_readers();
  void ask_for_readers(access::Requests& requests);
  void ask_all(access::Requests& requests, Range parity_rows);
  void ask(access::Requests& requests, std::size_t member, Range parity_rows);
  [[nodiscard]] Status take(access::Requests& requests, std::size_t member, Range parity_rows,
                            const net::Packet& reply);
  [[nodiscard]] Status missing(std::size_t member, Error error) const;
  [[nodiscard]] Status check_generation(std::size_t member, std::uint64_t generation) const;

  Peers& peers_;
  component::Storage& storage_;
  const Keeper keeper_;
  const MemberOptions options_;
  std::vector<Range> limits_;  // by member, in parity rows
  std::unique_ptr<access::Grant> grant_;
  std::vector<Member> members_;
};

}  // namespace pif::lfs
