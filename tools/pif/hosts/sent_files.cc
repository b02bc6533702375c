#include "hosts/sent_files.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "pif/proto/server.pb.h"

namespace pif::cli {
namespace {

constexpr std::string_view kMark = "PIF host files 1, bytes: ";  // and their number, a line end, and they

// What is of one host alone, by its name in the file system's folder.
std::array<std::pair<const char*, std::string*>, 4> own_parts(cluster::HostFiles& files) {
  return {{{"host", &files.host},
           {"keys/cluster.key", &files.cluster_key},
           {"keys/host.curve", &files.host_pair},
           {"keys/client.curve", &files.client_pair}}};
}

}  // namespace

// In the message in which heartbeats bring them.
Result<std::string> pack_files(const cluster::HostFiles& files) {
  proto::HeartbeatReply message;
  const auto add = [&](const std::string& name, const std::string& content) {
    proto::ClusterFile& file = *message.add_files();
    file.set_name(name);
    file.set_content(content);
  };
  cluster::HostFiles own = files;
  for (const auto& [name, content] : own_parts(own)) {
    if (!content->empty()) add(name, *content);
  }
  for (const cluster::SharedFile& file : files.shared) add(file.name, file.content);
  const std::string bytes = message.SerializeAsString();
  std::string packed = fmt::format("{}{}\n{}", kMark, bytes.size(), bytes);
  if (packed.size() <= kSentBytesMax) return packed;
  return fail(Code::kTooLarge,
              fmt::format("the files of a host have {} bytes; {} may be sent", packed.size(), kSentBytesMax));
}

Result<cluster::HostFiles> unpack_files(std::string_view packed) {
  const std::size_t end = packed.find('\n');
  if (!packed.starts_with(kMark) || end == std::string_view::npos || packed.size() > kSentBytesMax)
    return fail(Code::kInvalid, "what was sent are no files of a host, or those of another release");
  const std::string_view size = packed.substr(kMark.size(), end - kMark.size()), bytes = packed.substr(end + 1);
  proto::HeartbeatReply message;
  if (size != std::to_string(bytes.size()) || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(Code::kInvalid, "the files of a host that were sent are damaged, or not all of them arrived");
  cluster::HostFiles files;
  for (proto::ClusterFile& file : *message.mutable_files()) {
    bool is_own = false;
    for (const auto& [name, content] : own_parts(files)) {
      if (file.name() != name) continue;
      *content = file.content();
      is_own = true;
    }
    if (!is_own) files.shared.push_back({file.name(), file.content()});
  }
  return files;
}

}  // namespace pif::cli
