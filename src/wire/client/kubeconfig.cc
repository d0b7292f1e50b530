#include "wire/client/kubeconfig.h"

#include "api/text/base64.h"
#include "base/utf8.h"
#include "wire/client/bearer_token.h"
#include "wire/tls/private_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <vector>

namespace spillway::wire {

namespace {

/// A place in the file, for messages and look-ups: "clusters[kind].cluster".
class Field {
 public:
  Field(const std::string& file, std::string path, YAML::Node node)
      : file_(&file), path_(std::move(path)), node_(std::move(node)) {}

  Field child(const std::string& key) const {
    return {*file_, path_.empty() ? key : path_ + "." + key, node_.IsMap() ? YAML::Node(node_[key]) : YAML::Node()};
  }

  bool present() const { return node_.IsDefined() && !node_.IsNull(); }

  template <typename... Args>
  Error wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid(*file_ + ": " + path_, format, std::forward<Args>(args)...);
  }

  /// Empty if it is absent.
  Result<std::string> text() const {
    if (!present()) return std::string();
    if (!node_.IsScalar()) return wrong("expected a string");
    return node_.Scalar();
  }

  Result<std::string> required_text() const {
    SPILLWAY_TRY(value, text());
    if (value.empty()) return wrong("missing");
    return value;
  }

  Result<bool> flag() const {
    SPILLWAY_TRY(value, text());
    if (value.empty() || value == "false") return false;
    if (value == "true") return true;
    return wrong("expected true or false, got \"{}\"", value);
  }

  /// The element of a list of {name: …} with that name.
  Result<Field> named(const std::string& name) const {
    if (!present()) return wrong("missing");
    if (!node_.IsSequence()) return wrong("expected a list");
    for (const YAML::Node& element : node_) {
      if (!element.IsMap()) return wrong("expected a list of mappings");
      const YAML::Node found = element["name"];
      if (found && found.IsScalar() && found.Scalar() == name) return Field(*file_, path_ + "[" + name + "]", element);
    }
    return wrong("no entry named \"{}\"", name);
  }

 private:
  const std::string* file_;
  std::string path_;
  YAML::Node node_;
};

std::string beside(const std::string& config_path, const std::string& path) {
  const std::size_t slash = config_path.rfind('/');
  if (path.starts_with('/') || slash == std::string::npos) return path;
  return config_path.substr(0, slash + 1) + path;
}

/// NAME-data (base64), else the file that NAME points to; empty if both are absent.
Result<std::string> read_pem(const Field& parent, const std::string& name, const std::string& config_path) {
  const Field data = parent.child(name + "-data");
  SPILLWAY_TRY(encoded, data.text());
  if (!encoded.empty()) {
    auto decoded = api::decode_base64(encoded);
    if (!decoded) return data.wrong("not base64");
    return *std::move(decoded);
  }
  const Field link = parent.child(name);
  SPILLWAY_TRY(path, link.text());
  if (path.empty()) return std::string();
  auto text = read_file(beside(config_path, path));
  if (!text) return link.wrong("{}", text.error().text());
  return text;
}

Outcome read_cluster(const Field& cluster, const std::string& path, Kubeconfig& config) {
  if (!cluster.present()) return cluster.wrong("missing");
  const Field server = cluster.child("server");
  SPILLWAY_TRY(url, server.required_text());
  if (!url.starts_with("https://") && !url.starts_with("http://")) {
    return server.wrong("expected https://HOST[:PORT] or http://HOST[:PORT], got \"{}\"", url);
  }
  SPILLWAY_TRY(insecure, cluster.child("insecure-skip-tls-verify").flag());
  SPILLWAY_TRY(authority, read_pem(cluster, "certificate-authority", path));
  SPILLWAY_TRY(tls_server_name, cluster.child("tls-server-name").text());
  if (const Field proxy = cluster.child("proxy-url"); proxy.present()) return proxy.wrong("not supported");
  if (insecure && !authority.empty()) {
    return cluster.child("insecure-skip-tls-verify").wrong("must not be set together with a certificate authority");
  }
  config.server = std::move(url);
  config.verify = !insecure;
  config.authority_pem = std::move(authority);
  config.tls_server_name = std::move(tls_server_name);
  return {};
}

Outcome read_user(const Field& user, const std::string& path, Kubeconfig& config) {
  if (!user.present()) return {};  // nobody in particular
  for (const char* way : {"exec", "auth-provider", "username", "password", "as"}) {
    if (const Field field = user.child(way); field.present()) {
      return field.wrong("not supported; use client-certificate, client-key or token");
    }
  }
  SPILLWAY_TRY(certificate, read_pem(user, "client-certificate", path));
  SPILLWAY_TRY(key, read_pem(user, "client-key", path));
  if (certificate.empty() != key.empty()) {
    return user.child(key.empty() ? "client-key" : "client-certificate").wrong("missing beside its counterpart");
  }
  SPILLWAY_TRY(token, user.child("token").text());
  const Field token_file = user.child("tokenFile");
  SPILLWAY_TRY(token_path, token_file.text());
  if (!token_path.empty()) {
    config.token_file = beside(path, token_path);
    auto text = read_bearer_token(config.token_file);
    if (text) token = *std::move(text);
    if (token.empty()) return token_file.wrong("{}", text.error().text());
  }
  config.certificate_pem = std::move(certificate);
  config.key_pem = std::move(key);
  config.token = std::move(token);
  return {};
}

Result<Kubeconfig> parse_document(const Field& root, const std::string& path) {
  const Field kind = root.child("kind");
  SPILLWAY_TRY(kind_text, kind.text());
  if (!kind_text.empty() && kind_text != "Config") return kind.wrong("expected Config, got \"{}\"", kind_text);
  SPILLWAY_TRY(current, root.child("current-context").required_text());
  SPILLWAY_TRY(context_entry, root.child("contexts").named(current));
  const Field context = context_entry.child("context");
  SPILLWAY_TRY(cluster_name, context.child("cluster").required_text());
  SPILLWAY_TRY(user_name, context.child("user").text());
  SPILLWAY_TRY(name_space, context.child("namespace").text());

  Kubeconfig config;
  config.name_space = std::move(name_space);
  SPILLWAY_TRY(cluster, root.child("clusters").named(cluster_name));
  SPILLWAY_TRY_VOID(read_cluster(cluster.child("cluster"), path, config));
  if (!user_name.empty()) {
    SPILLWAY_TRY(user, root.child("users").named(user_name));
    SPILLWAY_TRY_VOID(read_user(user.child("user"), path, config));
  }
  return config;
}

/// Quoted, so that a token of digits stays a string.
void put(YAML::Emitter& out, const char* key, const std::string& value) {
  if (value.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
}

void put_data(YAML::Emitter& out, const char* key, const std::string& pem) {
  if (!pem.empty()) put(out, key, api::encode_base64(pem));
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& path) {
  if (const auto at = find_non_text(text)) {
    const auto line = std::ranges::count(text.substr(0, *at), '\n') + 1;
    return invalid(fmt::format("{}:{}", path, line), "expected UTF-8 text, found byte {:#04x}",
                   static_cast<unsigned char>(text[*at]));
  }
  YAML::Node document;
  try {
    document = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    return invalid(fmt::format("{}:{}:{}", path, error.mark.line + 1, error.mark.column + 1), "{}", error.msg);
  }
  if (!document.IsMap())
    return invalid(path, "expected a kubeconfig, found {}", document.IsNull() ? "nothing" : "no mapping");
  try {
    return parse_document(Field(path, "", document), path);
  } catch (const YAML::Exception& error) {
    return invalid(path, "{}", error.msg);
  }
}

Result<Kubeconfig> read_kubeconfig(const std::string& path) {
  SPILLWAY_TRY(text, read_file(path));
  return parse_kubeconfig(text, path);
}

std::string format_kubeconfig(const Kubeconfig& config, std::string_view name_text) {
  const std::string name(name_text);
  YAML::Emitter out;
  out << YAML::BeginMap;
  put(out, "apiVersion", "v1");
  put(out, "kind", "Config");

  out << YAML::Key << "clusters" << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  put(out, "name", name);
  out << YAML::Key << "cluster" << YAML::Value << YAML::BeginMap;
  put(out, "server", config.server);
  put_data(out, "certificate-authority-data", config.authority_pem);
  put(out, "tls-server-name", config.tls_server_name);
  if (!config.verify) out << YAML::Key << "insecure-skip-tls-verify" << YAML::Value << true;
  out << YAML::EndMap << YAML::EndMap << YAML::EndSeq;

  out << YAML::Key << "users" << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  put(out, "name", name);
  out << YAML::Key << "user" << YAML::Value << YAML::BeginMap;
  put_data(out, "client-certificate-data", config.certificate_pem);
  put_data(out, "client-key-data", config.key_pem);
  put(out, "token", config.token);
  out << YAML::EndMap << YAML::EndMap << YAML::EndSeq;

  out << YAML::Key << "contexts" << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  put(out, "name", name);
  out << YAML::Key << "context" << YAML::Value << YAML::BeginMap;
  put(out, "cluster", name);
  put(out, "user", name);
  put(out, "namespace", config.name_space);
  out << YAML::EndMap << YAML::EndMap << YAML::EndSeq;

  put(out, "current-context", name);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

Outcome write_kubeconfig(const std::string& path, const Kubeconfig& config, std::string_view name) {
  return write_private_file(path, format_kubeconfig(config, name));
}

}  // namespace spillway::wire
