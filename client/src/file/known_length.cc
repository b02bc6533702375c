#include "file/known_length.h"

#include <algorithm>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/access/rebuilt_read.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "pif/wire/convert.h"

namespace pif::client {
namespace {

constexpr Duration kAskAgain = std::chrono::milliseconds(100);

// LFS 0 is there, and does not know what it had: this error says so.
bool has_lost_it(const Error& error) { return error.code == Code::kCorrupt; }

// LFS 0 says less than the directory knows.
Error lost_or_removed(FileState& file, Error less) {
  Error why = file.removed_or(std::move(less));
  if (why.code == Code::kStaleNode && access::can_be_rebuilt(file.parts)) why.code = Code::kCorrupt;
  return why;
}

}  // namespace

KnownLength::KnownLength(FileState& file)
    : file_(file),
      known_(file.parts.creating),
      file_length_(file.parts.creating ? FileLength{} : file.parts.file_length) {}

bool KnownLength::ends_short() const {
  const Format& format = file_.parts.format;
  return format.is_fixed() && file_length_.bytes < file_length_.records * format.record_length;
}

std::uint32_t KnownLength::record_bytes(RecordNumber n) const {
  return fixed_record_bytes(file_.parts.format.record_length, file_length_, n);
}

void KnownLength::grow_to(const FileLength& file_length) {
  PIF_ASSERT(file_.creating(), file_length.records, file_length.bytes);
  file_length_.records = std::max(file_length_.records, file_length.records);
  file_length_.bytes = std::max(file_length_.bytes, file_length.bytes);
  PIF_ASSERT(check(file_length_).has_value(), file_length_.records, file_length_.bytes);
}

Status KnownLength::check(const FileLength& file_length) const {
  const FileParts& parts = file_.parts;
  if (!parts.format.is_fixed() || is_fixed_file_length(parts.format.record_length, file_length)) return {};
  return fail(Code::kCorrupt,
              fmt::format("{}: {} records of {} bytes cannot have {} bytes", parts.path, file_length.records,
                          parts.format.record_length, file_length.bytes),
              file_.node(0).name());
}

Status KnownLength::check_published(const FileLength& file_length) const {
  const FileParts& parts = file_.parts;
  PIF_TRY(check(file_length));
  if (file_length.records >= parts.file_length.records) return {};
  return fail(Code::kStaleNode,
              fmt::format("{}: the directory knows of {} records, and the LFS that keeps the length of {}: it has "
                          "lost some; run pif fsck",
                          parts.path, parts.file_length.records, file_length.records),
              file_.node(0).name());
}

FileLength KnownLength::as_published(const FileLength& said) const {
  const FileParts& parts = file_.parts;
  const bool nobody_keeps_it =
      parts.is_protected() && said.records == 0 && parts.layout.rows(0, parts.file_length.records) == 0;
  return nobody_keeps_it ? parts.file_length : said;
}

// What was published without an LFS is not read from it: it may have other rows there, which were given up when it was
// lost, and not know yet that it is.
Status KnownLength::check_view(const net::Packet& reply) const {
  const FileParts& parts = file_.parts;
  const std::uint64_t view = reply.envelope.length_reply().view();
  if (!parts.is_protected() || view <= parts.view) return {};
  return fail(Code::kUnavailable,
              fmt::format("{}: its length is of view {}, this client goes by view {}", parts.path, view, parts.view));
}

Result<FileLength> KnownLength::get(bool fresh) {
  if (file_.creating() || (known_ && (file_.kind.held || !fresh))) return file_length_;
  PIF_TRY(ask_until_known());
  known_ = true;
  return file_length_;
}

// While LFS 0 is silent its deputy may not know whether what was appended last is published: LFS 0 will say so when it
// is back, or others do without it soon.
Status KnownLength::ask_until_known() {
  Session& session = *file_.session;
  const Time until = session.clock().now() + session.timeout();
  for (;;) {
    const Status asked = file_.in_newest_view([this] { return ask(); });
    const Time now = session.clock().now();
    const bool is_later = !asked && asked.error().code == Code::kRetry && file_.parts.is_protected() && now < until;
    if (!is_later) return asked;
    PIF_TRY(session.caller().pump(std::min(until, now + kAskAgain)));
    (void)file_.look_anew(session.timeout());  // if the server does not answer, the view is as it was
  }
}

Status KnownLength::ask() {
  const FileParts& parts = file_.parts;
  PIF_TRY_VALUE(const LfsIndex sequencer, file_.sequencer());
  if (sequencer != 0) return ask_deputy({Code::kUnavailable, "it is not there", file_.node(0).name()});
  bool is_of_newer_view = false;  // then the deputy may be lost, and not know it: who takes part is asked first
  const auto ask_first = [&]() -> Result<FileLength> {
    proto::Envelope request;
    request.mutable_length()->set_file(parts.file.value);
    auto reply = file_.ask_node(0, request);
    if (!reply) return fail(std::move(reply.error()));
    const Status checked = check_view(*reply);
    is_of_newer_view = !checked;
    PIF_TRY(checked);
    const FileLength said = as_published(wire::file_length_of(reply->envelope.length_reply().file_length()));
    if (auto good = check_published(said); !good) return fail(lost_or_removed(file_, std::move(good.error())));
    return said;
  };
  auto said = ask_first();
  const bool has_none = said ? said->records == 0
                             : said.error().code == Code::kNotFound || (file_.is_marked && has_lost_it(said.error()));
  if (has_none && parts.file_length.records == 0 && !parts.is_protected())
    said = file_.directory_length;  // an empty file has no component, and of a marked one it may be gone
  if (!said && !is_of_newer_view && access::can_rebuild(parts, said.error())) {
    PIF_TRY(ask_deputy(said.error()));
    // It may have got its component back since, and then its word counts.
    if (has_lost_it(said.error())) said = ask_first();
    if (said) file_length_ = *said;
    return {};
  }
  PIF_TRY_VALUE(file_length_, std::move(said));
  return {};
}

// LFS 0 is away, or has no lease and so does not know whether others do without it. Its deputy got all that it
// published, or publishes itself; nothing, if nothing was appended. kRetry: it does not know yet. An LFS 0 that has
// lost its component publishes nothing, and gets as its length what was noted last, whoever got it: so that
// counts.
Status KnownLength::ask_deputy(const Error& why) {
  const FileParts& parts = file_.parts;
  const LfsIndex deputy = parity::deputy_of(parts.layout);
  if (parts.is_absent(deputy))
    return fail(why.code, fmt::format("{}: its length is on {} ({}), and its deputy {} is absent: see pif status",
                                      parts.path, file_.node(0).name(), why.text, file_.node(deputy).name()));
  proto::Envelope request;
  request.mutable_length()->set_file(parts.file.value);
  request.mutable_length()->set_noted(true);
  if (has_lost_it(why)) {
    request.mutable_length()->set_view(parts.view);
    request.mutable_length()->set_at_rest(true);
  }
  auto reply = file_.ask_node(deputy, request);
  if (!reply && reply.error().code == Code::kOldView) reply.error().code = Code::kUnavailable;  // others take part now
  if (!reply)
    return fail(reply.error().code, fmt::format("{}: its length is on {} ({}), and on the deputy: {}", parts.path,
                                                file_.node(0).name(), why.text, reply.error().text));
  PIF_TRY(check_view(*reply));
  const FileLength noted = wire::file_length_of(reply->envelope.length_reply().file_length());
  PIF_TRY(check(noted));
  const bool is_longer = noted.records > parts.file_length.records || noted.bytes > parts.file_length.bytes;
  file_length_ = is_longer ? noted : parts.file_length;
  return {};
}

Result<FileLength> KnownLength::for_records(std::uint64_t records) {
  const bool may_have_changed = records == file_length_.records && ends_short();
  if (known_ && records <= file_length_.records && !may_have_changed) return file_length_;
  return get(true);
}

}  // namespace pif::client
