// Files that several create: members, and the commit that waits for all of them (docs/PROTOCOL.md "Files that several
// write").
#include <algorithm>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/base/assert.h"
#include "pif/wire/convert.h"

namespace pif::client {

namespace {

constexpr std::uint32_t kDone = 2;

Status check_shared(const FileState& file) {
  PIF_TRY(file.check_not_ended());
  if (file.is_shared()) return {};
  return fail(Code::kInvalid, fmt::format("{}: nobody shares it", file.parts.path));
}

}  // namespace

Status FileState::check_not_done() const {
  if (!is_done) return {};
  return fail(Code::kInvalid, fmt::format("{}: this member has said that it is done", parts.path));
}

Result<std::string> FileState::share() {
  PIF_TRY(check_usable());
  if (!creating() || kind.adopted)
    return fail(Code::kInvalid, fmt::format("{}: only a file being created is shared", parts.path));
  PIF_TRY(keep_rights());
  PIF_TRY(scattered.begin());
  PIF_ASSERT(scattered.is_on(), phase);
  PIF_TRY(scattered.clear_cut());
  proto::Share share;
  share.set_file(parts.file.value);
  for (const proto::NodeInfo& node : parts.nodes) share.add_incarnations(node.incarnation());
  PIF_TRY_VALUE(const proto::ShareReply shared, session->call(std::move(share)));
  if (!member) member = 0;
  return shared.token();
}

Status FileState::done() {
  PIF_TRY(check_shared(*this));
  if (is_done) return {};
  PIF_TRY(finish_operations());
  scattered.close();
  proto::MemberDone request;
  request.set_file(parts.file.value);
  *request.mutable_file_length() = wire::proto_of(length.now());
  PIF_TRY(session->call(std::move(request)));
  is_done = true;
  return {};
}

// They come in pages.
Result<std::vector<proto::MembersReply::One>> FileState::members() {
  PIF_TRY(check_shared(*this));
  std::vector<proto::MembersReply::One> all;
  for (bool more = true; more;) {
    proto::Members request;
    request.set_file(parts.file.value);
    request.set_from(all.empty() ? 0 : all.back().member() + 1);
    PIF_TRY_VALUE(const proto::MembersReply page, session->call(std::move(request)));
    more = page.more() && page.members_size() > 0;
    all.insert(all.end(), page.members().begin(), page.members().end());
  }
  return all;
}

Status FileState::drop(std::uint32_t number) {
  PIF_TRY(check_shared(*this));
  proto::DropMember request;
  request.set_file(parts.file.value);
  request.set_member(number);
  PIF_TRY(session->call(std::move(request)));
  return {};
}

Status FileState::sync() {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (!creating()) return tell_written();  // what was acknowledged is durable
  if (scattered.is_possible()) PIF_TRY(scattered.begin());
  if (!scattered.is_on())
    return fail(Code::kUnsupported,
                fmt::format("{}: what is written in order is made durable by its commit", parts.path));
  return scattered.sync();
}

Status FileState::preallocate(std::uint64_t bytes) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (!creating() || kind.adopted)
    return fail(Code::kInvalid, fmt::format("{}: only a file being created gets room beforehand", parts.path));
  PIF_TRY(check_piece_end(bytes));
  PIF_TRY(check_not_done());
  PIF_TRY(scattered.begin());
  return scattered.preallocate(bytes);
}

Status FileState::seal_scattered() {
  PIF_ASSERT(scattered.is_on(), phase);
  FileLength whole = length.now();
  if (is_shared()) {
    PIF_TRY(done());
    const auto all = members();
    // It has none any more: another member, or a commit before this one, has committed it, which the server confirms.
    if (!all && all.error().code == Code::kStaleFile) {
      enter_sealing();
      return {};
    }
    if (!all) return fail(all.error());
    for (const auto& one : *all) {
      if (one.state() == kDone && one.file_length().bytes() > whole.bytes)
        whole = wire::file_length_of(one.file_length());
      if (one.state() == kDone || one.state() == static_cast<std::uint32_t>(File::Member::State::kDropped)) continue;
      const bool is_gone = one.state() == static_cast<std::uint32_t>(File::Member::State::kGone);
      return fail(is_gone ? Code::kUnavailable : Code::kBusy,
                  fmt::format("{}: member {} ({}) {}", parts.path, one.member(), one.program(),
                              is_gone ? "has gone before it was done: drop it, if that is meant" : "is still writing"));
    }
    PIF_TRY(length.check(whole));
  }
  enter_sealing();
  PIF_TRY(scattered.seal(whole));
  length.grow_to(whole);
  return {};
}

}  // namespace pif::client
