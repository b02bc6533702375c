#include "repair/inventory.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/wire/values.h"

namespace pif::cli {
namespace {

constexpr std::uint32_t kPage = 500;
constexpr std::int64_t kRenewAfterSeconds = 300;          // half the life of a capability
constexpr auto kCheckTimeout = std::chrono::minutes(30);  // of one component; silence ends it much earlier
constexpr std::uint32_t kUnknownFile = 4;                 // FileStatesReply

proto::ListComponents list_components(std::uint64_t after, std::uint32_t limit) {
  proto::ListComponents request;
  request.set_after(after);
  request.set_limit(limit);
  return request;
}

proto::ListFiles list_files(std::uint64_t after, std::uint32_t limit) {
  proto::ListFiles request;
  request.set_after(after);
  request.set_limit(limit);
  return request;
}

}  // namespace

template <wire::Request R>
Result<wire::ReplyTo<R>> Inventory::ask(const proto::NodeInfo& node, R request) {
  PIF_TRY(renew());
  return session_->call(node, std::move(request), capability_);
}

Status Inventory::renew() {
  const std::int64_t now = session_->clock().wall_seconds();  // goes on while the machine sleeps
  if (!capability_.empty() && now - capability_from_ < kRenewAfterSeconds) return {};
  PIF_TRY_VALUE(const proto::ListFilesReply reply, session_->call(list_files(0, 1)));
  capability_ = reply.capability();
  capability_from_ = now;
  if (capability_.empty())
    return fail(Code::kPermission, "only root and the owner of the file system may check it; run fsck as one of them");
  return {};
}

Status Inventory::open(Needs needs) {
  PIF_TRY_VALUE(const proto::NodesReply reply, session_->call(proto::Nodes()));
  nodes_.assign(reply.nodes().begin(), reply.nodes().end());
  for (const auto& node : nodes_) {
    const bool good =
        node.state() == kNodeUp || needs == Needs::kServer || (needs == Needs::kAnswers && node.state() == kNodeStale);
    if (!good && node.state() == kNodeStale) return fail(Code::kStaleNode, node.trouble());
    if (!good && node.state() == kNodeFailing)
      return fail(Code::kIo, fmt::format("{}: {}", node.name(), node.trouble()));
    if (!good)
      return fail(
          Code::kUnavailable,
          fmt::format("it is not up, so not all can be checked; start it with pif up, or stop all daemons and run: "
                      "pif-lfs check {}",
                      node.root().empty() ? "ROOT" : node.root()),
          node.name());
  }
  return renew();
}

const std::string& Inventory::name_of(std::uint32_t node) const {
  static const std::string kUnknown = "an unknown LFS";
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& n) { return n.id() == node; });
  return found == nodes_.end() ? kUnknown : found->name();
}

Result<proto::NodeInfo> Inventory::node_named(const std::string& name) const {
  for (const auto& node : nodes_) {
    if (node.name() == name) return node;
  }
  return fail(Code::kNotFound, fmt::format("there is no LFS named {}: see pif node list", name));
}

template <wire::Request R>
std::vector<Result<wire::ReplyTo<R>>> Inventory::ask_all(const std::vector<const proto::NodeInfo*>& nodes,
                                                         const std::vector<R>& requests, Duration timeout) {
  std::vector<Result<net::CallId>> calls;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    net::Packet packet = net::packet_of(requests[i]);
    packet.envelope.set_capability(capability_);
    calls.push_back(session_->start_node(*nodes[i], std::move(packet), timeout));
  }
  std::vector<Result<wire::ReplyTo<R>>> replies;
  for (auto& call : calls) {
    if (call) {
      replies.push_back(net::reply_in<R>(session_->caller().wait(*call)));
    } else {
      replies.push_back(fail(std::move(call.error())));
    }
  }
  return replies;
}

Result<std::map<std::uint64_t, Held>> Inventory::all_components() {
  std::map<std::uint64_t, Held> out;
  std::vector<const proto::NodeInfo*> asked;
  for (const auto& node : nodes_) asked.push_back(&node);
  std::vector<std::uint64_t> after(nodes_.size(), 0);
  while (!asked.empty()) {
    PIF_TRY(renew());
    std::vector<proto::ListComponents> requests;
    for (const auto* node : asked)
      requests.push_back(list_components(after[static_cast<std::size_t>(node - nodes_.data())], kPage));
    auto replies = ask_all(asked, requests, session_->timeout());
    std::vector<const proto::NodeInfo*> more;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      PIF_TRY_VALUE(proto::ListComponentsReply page, std::move(replies[i]));
      if (page.more() && page.components_size() > 0) {
        after[static_cast<std::size_t>(asked[i] - nodes_.data())] =
            page.components(page.components_size() - 1).shape().file();
        more.push_back(asked[i]);
      }
      for (auto& component : *page.mutable_components())
        out[component.shape().file()][asked[i]->id()] = std::move(component);
    }
    asked = std::move(more);
  }
  return out;
}

Result<std::map<std::uint64_t, proto::ComponentState>> Inventory::components_on(const proto::NodeInfo& node) {
  std::map<std::uint64_t, proto::ComponentState> out;
  for (std::uint64_t after = 0;;) {
    PIF_TRY_VALUE(proto::ListComponentsReply page, ask(node, list_components(after, kPage)));
    for (auto& component : *page.mutable_components()) {
      after = component.shape().file();
      out[after] = std::move(component);
    }
    if (!page.more() || page.components_size() == 0) return out;
  }
}

Result<std::vector<Inventory::Quarantined>> Inventory::quarantine() {
  std::vector<Quarantined> out;
  for (const auto& node : nodes_) {
    for (std::uint64_t after = 0;;) {
      proto::ListComponents request = list_components(after, kPage);
      request.set_quarantined(true);
      PIF_TRY_VALUE(proto::ListComponentsReply page, ask(node, std::move(request)));
      if (page.since_size() != page.components_size()) return out;  // an LFS that is older than the quarantine
      for (int i = 0; i < page.components_size(); ++i) {
        after = page.components(i).shape().file();
        out.push_back({node.id(), std::move(*page.mutable_components(i)), page.since(i)});
      }
      if (!page.more() || page.components_size() == 0) break;
    }
  }
  return out;
}

Result<Everything> Inventory::everything() {
  Everything all;
  PIF_TRY_VALUE(all.components, all_components());
  PIF_TRY_VALUE(auto quarantined, quarantine());
  for (Quarantined& one : quarantined) {
    const std::uint64_t file = one.state.shape().file();
    if (one.is_known())
      all.components[file].emplace(one.node, std::move(one.state));
    else if (one.state.bytes() > 0)
      all.aside.emplace(file, one.node);
  }
  return all;
}

Status Inventory::flush() {
  PIF_TRY(renew());
  std::vector<const proto::NodeInfo*> all;
  for (const auto& node : nodes_) all.push_back(&node);
  for (auto& reply : ask_all(all, std::vector<proto::Flush>(all.size()), session_->timeout())) {
    const bool serves = reply || (reply.error().code != Code::kStaleNode && reply.error().code != Code::kUnavailable);
    if (!reply && serves) return fail(std::move(reply.error()));
  }
  return {};
}

Status Inventory::hold(std::chrono::milliseconds time) {
  proto::Hold request;
  request.set_for_ms(static_cast<std::uint32_t>(time.count()));
  PIF_TRY(renew());
  std::vector<const proto::NodeInfo*> all;
  for (const auto& node : nodes_) all.push_back(&node);
  // So that the files of a snapshot are nearly all that there is, and what reads them needs no redo log. Where it
  // fails, the log in the snapshot has the rest.
  if (time.count() > 0) ask_all(all, std::vector<proto::Flush>(all.size()), session_->timeout());
  PIF_TRY(session_->call(request));  // first, so that no report has what is not in the snapshot
  for (auto& reply : ask_all(all, std::vector<proto::Hold>(all.size(), request), session_->timeout())) {
    if (!reply) return fail(std::move(reply.error()));
  }
  return {};
}

Result<std::map<std::uint64_t, FileRecord>> Inventory::all_files() {
  std::map<std::uint64_t, FileRecord> out;
  std::uint64_t after = 0;
  while (true) {
    PIF_TRY_VALUE(proto::ListFilesReply page, session_->call(list_files(after, kPage)));
    for (auto& file : *page.mutable_files()) {
      after = std::max(after, file.file());
      const bool has_bytes = file.layout().nodes_size() > 0;  // links and the like have none
      if (has_bytes) out[file.file()] = std::move(file);
    }
    if (!page.more() || page.files_size() == 0) return out;
  }
}

Result<Held> Inventory::components_of(std::uint64_t file) {
  PIF_TRY(renew());
  std::vector<const proto::NodeInfo*> asked;
  for (const auto& node : nodes_) asked.push_back(&node);
  auto replies = ask_all(asked, std::vector<proto::ListComponents>(asked.size(), list_components(file - 1, 1)),
                         session_->timeout());
  Held held;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    PIF_TRY_VALUE(proto::ListComponentsReply page, std::move(replies[i]));
    if (page.components_size() > 0 && page.components(0).shape().file() == file)
      held[asked[i]->id()] = std::move(*page.mutable_components(0));
  }
  return held;
}

Result<std::optional<FileRecord>> Inventory::file(std::uint64_t id) {
  PIF_TRY_VALUE(proto::ListFilesReply page, session_->call(list_files(id - 1, 1)));
  if (page.files_size() == 0 || page.files(0).file() != id) return std::optional<FileRecord>{};
  return std::optional<FileRecord>(std::move(*page.mutable_files(0)));
}

Result<Inventory::SumCheck> Inventory::check_sums(
    const std::map<std::uint32_t, std::vector<std::uint64_t>>& files_by_node) {
  SumCheck out;
  std::size_t longest = 0;
  for (const auto& [node, files] : files_by_node) longest = std::max(longest, files.size());
  for (std::size_t turn = 0; turn < longest; ++turn) {
    PIF_TRY(renew());
    std::vector<const proto::NodeInfo*> asked;
    std::vector<proto::CheckComponent> requests;
    for (const auto& node : nodes_) {
      const auto files = files_by_node.find(node.id());
      if (files == files_by_node.end() || files->second.size() <= turn) continue;
      asked.push_back(&node);
      requests.emplace_back().set_file(files->second[turn]);
      requests.back().set_sums(true);
    }
    auto replies = ask_all(asked, requests, kCheckTimeout);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (!replies[i] && (replies[i].error().code == Code::kNotFound || replies[i].error().code == Code::kStaleFile))
        continue;
      PIF_TRY_VALUE(const proto::CheckComponentReply reply, std::move(replies[i]));
      out.bytes += reply.bytes();
      for (const auto& damage : reply.damages())
        out.findings.push_back({Finding::Kind::kSums, requests[i].file(), asked[i]->id(), "", damage});
    }
  }
  return out;
}

Status Inventory::rebuild(const proto::NodeInfo& node, std::uint64_t rate) {
  proto::Rebuild request;
  request.set_bytes_per_second(rate);
  PIF_TRY(ask(node, std::move(request)));
  return {};
}

Result<proto::RebuildStatusReply> Inventory::rebuild_status(const proto::NodeInfo& node) {
  return ask(node, proto::RebuildStatus());
}

Status Inventory::scrub(const proto::NodeInfo& node, std::uint64_t rate, bool only_look) {
  proto::Scrub request;
  request.set_bytes_per_second(rate);
  request.set_only_look(only_look);
  PIF_TRY(ask(node, std::move(request)));
  return {};
}

Result<proto::ScrubStatusReply> Inventory::scrub_status(const proto::NodeInfo& node) {
  return ask(node, proto::ScrubStatus());
}

Status Inventory::drill(const proto::NodeInfo& node, std::uint64_t rate) {
  proto::Drill request;
  request.set_bytes_per_second(rate);
  PIF_TRY(ask(node, std::move(request)));
  return {};
}

Result<proto::DrillStatusReply> Inventory::drill_status(const proto::NodeInfo& node) {
  return ask(node, proto::DrillStatus());
}

Status Inventory::remove_component(std::uint32_t node, std::uint64_t file) {
  PIF_TRY(renew());
  proto::FileStates question;
  question.add_files(file);
  net::Packet packet = net::packet_of(std::move(question));
  packet.envelope.set_capability(capability_);
  PIF_TRY_VALUE(const auto reply, net::reply_in<proto::FileStates>(session_->ask_server(std::move(packet))));
  const auto& states = reply.states();
  if (states.size() != 1 || states[0] != kUnknownFile)
    return fail(Code::kBusy, fmt::format("the server knows file {} after all; run fsck again", file));
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& n) { return n.id() == node; });
  if (found == nodes_.end()) return fail(Code::kNotFound, fmt::format("there is no node {}", node));
  proto::Settle order;
  order.add_unknown(file);
  PIF_TRY(ask(*found, std::move(order)));
  return {};
}

Status Inventory::note_complete(std::uint32_t node) {
  PIF_TRY(renew());
  proto::NodeRebuilt request;
  request.set_node(node);
  request.set_state(wire::kViewMember);
  net::Packet packet = net::packet_of(std::move(request));
  packet.envelope.set_capability(capability_);
  PIF_TRY(net::reply_in<proto::NodeRebuilt>(session_->ask_server(std::move(packet))));
  return {};
}

}  // namespace pif::cli
