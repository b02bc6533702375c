// Files that several clients write together: what each of them has written to which place, and who of them was done.
// Every byte that is read is one that somebody wrote there, or zero where perhaps nobody did; and none is older than
// one whose write was acknowledged before the read began, and that began after the older one's acknowledgement.
//
// A write counts from its acknowledgement. One that was not acknowledged, and those of members who were dropped, may
// have happened at any time after they began, or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulate/contents.h"
#include "simulate/oracle.h"

namespace pif::simulate {

class Together {
 public:
  using FileNumber = std::uint64_t;  // FileId
  using Write = std::size_t;
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  // A file that is being created, and that others may join.
  struct Invitation {
    FileNumber file = 0;
    std::size_t path = 0;
    std::uint64_t reach = 0;  // nobody writes further
    std::string token;
  };

  // oracle: gets what is wrong, and outlives this.
  explicit Together(Oracle& oracle) : oracle_(oracle), seen_(oracle) {}

  // ---- who takes part; members go by the names of their clients ----
  // power_losses: of all LFSs until now.
  void created(FileNumber file, std::uint32_t record_length, const std::string& creator, std::uint64_t power_losses);
  void invite(Invitation invitation) { invitations_.push_back(std::move(invitation)); }
  // Those that may be joined still, as far as is known here.
  std::vector<Invitation> invitations() const;
  // From then on it may be a member, and others may drop it before it hears that it is one.
  void begin_join(FileNumber file, const std::string& member);
  void joined(FileNumber file, const std::string& member, Time now);
  void begin_done(FileNumber file, const std::string& member) { files_[file].members[member].is_done = true; }
  // member: empty where the server has forgotten its name, so that it may be any.
  void begin_drop(FileNumber file, const std::string& member);

  // ---- what is done ----
  // What this write has at that byte of the file; never zero.
  static std::byte byte_of(Write write, std::uint64_t offset);
  Write begin_write(FileNumber file, const std::string& member, std::vector<Range> ranges, Time now);
  void wrote(Write write, Time now) { writes_[write].end = now; }
  void begin_commit(FileNumber file, Time now);
  // begin: when this commit began. What it may have done to the names is noted at the end.
  void committed(FileNumber file, NameOp publish);
  void not_committed(FileNumber file, NameOp publish, bool is_unknown);
  void given_up(FileNumber file) { files_[file].is_closed = true; }
  // What all commits have done to names, to the oracle.
  void note_commits();
  std::uint64_t commits() const { return commits_; }

  // ---- what is seen ----
  // Bytes of a file being created. power_losses: as above; bytes that were lost with the power of an LFS may be missed
  // by those who have its files open.
  void saw_unfinished(FileNumber file, std::uint64_t offset, std::span<const std::byte> bytes, const Span& when,
                      std::uint64_t power_losses);
  void saw_committed(FileNumber file, std::uint64_t offset, std::span<const std::byte> bytes, const Span& when);
  void saw_length(FileNumber file, const FileLength& file_length);

 private:
  struct Made {
    FileNumber file = 0;
    std::string member;
    std::vector<Range> ranges;
    Time begin{};
    Time end = kNever;
  };
  struct Member {
    Time joined{};         // kNever: it does not know
    bool is_done = false;  // or may be
    bool is_dropped = false;
  };
  struct File {
    std::uint32_t record_length = 0;
    std::uint64_t power_losses = 0;  // when it was begun
    std::map<std::string, Member> members;
    std::vector<Write> writes;
    std::optional<NameOp> publish;  // from the first commit's begin to the first success
    Time first_commit = kNever;
    bool is_closed = false;  // committed, or given up
  };
  // Of each byte, what is known of the writes that may be there.
  struct Byte {
    Time newest{};  // when the last of those that were over before the read has begun
    bool is_written = false;
    bool is_explained = false;
  };
  Time end_of(const File& file, const Made& write) const;
  void judge(FileNumber id, std::uint64_t offset, std::span<const std::byte> bytes, const Span& when, bool is_whole);

  Oracle& oracle_;
  Contents seen_;  // of committed files: they never change
  std::map<FileNumber, File> files_;
  std::vector<Made> writes_;
  std::vector<Invitation> invitations_;
  std::uint64_t commits_ = 0;
};

}  // namespace pif::simulate
