#include "messages/job.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/wire/convert.h"
#include "pif/wire/values.h"

namespace pif::tool {
namespace {

// Where requests for the LFS of node `id` of a layout go.
const proto::NodeInfo* find_node(const job::JobDescription& description, std::uint32_t id) {
  for (int i = 0; i < description.nodes_size(); ++i) {
    if (description.stands_for(i) == id) return &description.nodes(i);
  }
  for (int i = 0; i < description.other_nodes_size(); ++i) {
    if (description.other_stand_for(i) == id) return &description.other_nodes(i);
  }
  return nullptr;
}

// Of "tcp://host:port"; empty for anything else.
std::string_view host_of(const proto::NodeInfo& node) {
  constexpr std::string_view kTcp = "tcp://";
  std::string_view text = node.endpoints().tcp();
  if (!text.starts_with(kTcp)) return {};
  text.remove_prefix(kTcp.size());
  return text.substr(0, text.rfind(':'));
}

bool share_machine(const proto::NodeInfo& one, const proto::NodeInfo& other) {
  if (one.endpoints().machine() != other.endpoints().machine()) return false;
  return one.endpoints().machine() != 0 || host_of(one) == host_of(other);
}

}  // namespace

job::JobFile job_file_of(const client::FileParts& parts) {
  job::JobFile file;
  file.set_file(parts.file.value);
  file.set_path(parts.path);
  file.set_creating(parts.creating);
  *file.mutable_format() = wire::proto_of(parts.format);
  *file.mutable_layout() = parts.file_layout;
  *file.mutable_file_length() = wire::proto_of(parts.file_length);
  file.set_capability(parts.capability);
  file.set_capability_until(parts.capability_until);
  file.set_rights(parts.rights);
  file.set_epoch(parts.epoch);
  file.set_owner(parts.owner);
  return file;
}

Result<client::FileParts> parts_of(const job::JobFile& file, const job::JobDescription& description) {
  client::FileParts parts;
  parts.file = FileId(file.file());
  parts.path = file.path();
  parts.creating = file.creating();
  PIF_TRY_VALUE(parts.format, wire::format_of(file.format()));
  parts.file_layout = file.layout();
  PIF_TRY_VALUE(parts.layout, wire::layout_of(file.layout()));
  parts.file_length = wire::file_length_of(file.file_length());
  if (parts.format.is_fixed() && !parts.creating &&
      !is_fixed_file_length(parts.format.record_length, parts.file_length))
    return fail(Code::kCorrupt,
                fmt::format("{}: {} records of {} bytes cannot have {} bytes", parts.path, parts.file_length.records,
                            parts.format.record_length, parts.file_length.bytes));
  parts.capability = file.capability();
  parts.capability_until = file.capability_until();
  parts.rights = file.rights();
  parts.epoch = file.epoch();
  parts.owner = file.owner();
  for (const std::uint32_t id : file.layout().nodes()) {
    const proto::NodeInfo* const node = find_node(description, id);
    if (node == nullptr) {
      return fail(Code::kInvalid, fmt::format("the job's description lacks node {} of {}", id, parts.path));
    }
    parts.nodes.push_back(*node);
    // The controller has seen that all of an output take part, or others for them; an input was perhaps checked before.
    if (parts.creating) parts.nodes.back().set_view_state(wire::kViewMember);
  }
  return parts;
}

proto::NodeInfo brief(const proto::NodeInfo& node) {
  proto::NodeInfo result;
  result.set_id(node.id());
  result.set_name(node.name());
  *result.mutable_endpoints() = node.endpoints();
  result.set_view_state(node.view_state());
  return result;
}

bool are_near(const job::JobDescription& description, std::uint32_t a, std::uint32_t b) {
  PIF_ASSERT(std::max(a, b) < static_cast<std::uint32_t>(description.nodes_size()), a, b, description.nodes_size());
  if (a == b || description.apart()) return a == b;
  return share_machine(description.nodes(static_cast<int>(a)), description.nodes(static_cast<int>(b)));
}

bool all_are_near(const job::JobDescription& description) {
  for (int rank = 1; rank < description.nodes_size(); ++rank) {
    if (!are_near(description, 0, static_cast<std::uint32_t>(rank))) return false;
  }
  return true;
}

unsigned share_of_threads(const job::JobDescription& description, std::uint32_t rank, unsigned threads) {
  PIF_ASSERT(rank < static_cast<std::uint32_t>(description.nodes_size()), rank, description.nodes_size());
  unsigned workers = 0, before = 0;  // on that machine; of those, with lower ranks
  for (int other = 0; other < description.nodes_size(); ++other) {
    if (!share_machine(description.nodes(other), description.nodes(static_cast<int>(rank)))) continue;
    ++workers;
    if (static_cast<std::uint32_t>(other) < rank) ++before;
  }
  PIF_ASSERT(before < workers, before, workers);  // the worker shares its machine with itself
  return std::max(threads / workers + (before < threads % workers ? 1 : 0), 1U);
}

std::string mail_tcp(const proto::NodeInfo& node) { return fmt::format("tcp://{}:0", host_of(node)); }

proto::Endpoints mail_endpoints(const proto::NodeInfo& node, std::uint64_t job, std::uint32_t rank) {
  const std::string& beside = node.endpoints().unix_path();
  const auto slash = beside.rfind('/');
  const std::string folder = slash == std::string::npos ? std::string() : beside.substr(0, slash);
  const std::string own = fmt::format("{}/w{:016x}-{}", folder, job, rank);
  proto::Endpoints endpoints;
  endpoints.set_ipc(fmt::format("ipc://{}/mail", own));
  endpoints.set_unix_path(own + "/pass");
  return endpoints;
}

}  // namespace pif::tool
