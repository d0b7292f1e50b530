#include "wire/client/kubeconfig.h"

#include "api/json/json.h"
#include "api/text/base64.h"
#include "wire/client/bearer_token.h"
#include "wire/tls/private_file.h"
#include "yaml/yaml_document.h"

#include <algorithm>
#include <array>

namespace spillway::wire {

namespace {

using api::Json;

/// A kubeconfig file, parsed.
struct File {
  std::string path;
  yaml::Document document;
};

using Files = std::vector<File>;

/// A place in a file, for messages and look-ups: "clusters[kind].cluster".
class Field {
 public:
  explicit Field(const File& file) : file_(&file), value_(&file.document.value) {}

  const File& file() const { return *file_; }

  Field child(const std::string& key) const {
    Field below = *this;
    below.path_ += (path_.empty() ? "" : ".") + key;
    below.place_ = place_.empty() ? key : fmt::format("{}[{}]", place_, key);
    below.value_ = value_ == nullptr ? nullptr : value_->find(key);
    return below;
  }

  bool present() const { return value_ != nullptr && !value_->is_null(); }

  template <typename... Args>
  Error wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid(file_->path + ": " + path_, format, std::forward<Args>(args)...);
  }

  /// Empty if it is absent. What YAML takes for a number or a boolean is taken as it is spelled.
  Result<std::string> text() const {
    if (!present()) return std::string();
    if (const std::string* text = value_->if_string()) return *text;
    const yaml::Origin* origin = file_->document.origins.find(place_);
    if (value_->is_object() || value_->is_array() || origin == nullptr) return wrong("expected a string");
    return origin->text;
  }

  Result<std::string> required_text() const {
    SPILLWAY_TRY(value, text());
    if (value.empty()) return wrong("missing");
    return value;
  }

  Result<bool> flag() const {
    if (!present()) return false;
    SPILLWAY_TRY(value, text());
    if (value == "true" || value == "false") return value == "true";
    return wrong("expected true or false, got \"{}\"", value);
  }

  /// The elements of a list, each with its place; none if it is absent.
  Result<std::vector<Field>> elements() const {
    std::vector<Field> fields;
    if (!present()) return fields;
    if (!value_->is_array()) return wrong("expected a list");
    for (std::size_t i = 0; i < value_->if_array()->size(); ++i) {
      Field& element = fields.emplace_back(*this);
      element.path_ = fmt::format("{}[{}]", path_, i);
      element.place_ = fmt::format("{}[{}]", place_, i);
      element.value_ = &(*value_->if_array())[i];
    }
    return fields;
  }

  /// The element of a list of {name: …} with that name, if there is one.
  Result<std::optional<Field>> named(const std::string& name) const {
    SPILLWAY_TRY(fields, elements());
    for (Field& element : fields) {
      if (!element.value_->is_object()) return wrong("expected a list of mappings");
      SPILLWAY_TRY(found, element.child("name").text());
      if (found != name) continue;
      element.path_ = fmt::format("{}[{}]", path_, name);
      return std::optional<Field>(std::move(element));
    }
    return std::optional<Field>();
  }

 private:
  const File* file_;
  std::string path_;   // for people: entries by name
  std::string place_;  // place as in Document::origins
  const Json* value_;
};

std::string beside(const std::string& config_path, const std::string& path) {
  const std::size_t slash = config_path.rfind('/');
  if (path.starts_with('/') || slash == std::string::npos) return path;
  return config_path.substr(0, slash + 1) + path;
}

/// NAME-data (base64), else the file that NAME points to; empty if both are absent.
Result<std::string> read_pem(const Field& parent, const std::string& name) {
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
  auto text = read_file(beside(parent.file().path, path));
  if (!text) return link.wrong("{}", text.error().text());
  return text;
}

Outcome read_cluster(const Field& cluster, Kubeconfig& config) {
  if (!cluster.present()) return cluster.wrong("missing");
  const Field server = cluster.child("server");
  SPILLWAY_TRY(url, server.required_text());
  if (!url.starts_with("https://") && !url.starts_with("http://")) {
    return server.wrong("expected https://HOST[:PORT] or http://HOST[:PORT], got \"{}\"", url);
  }
  SPILLWAY_TRY(insecure, cluster.child("insecure-skip-tls-verify").flag());
  SPILLWAY_TRY(authority, read_pem(cluster, "certificate-authority"));
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

Outcome read_program(const Field& exec, Kubeconfig& config) {
  constexpr std::array<std::string_view, 2> kVersions{"client.authentication.k8s.io/v1",
                                                      "client.authentication.k8s.io/v1beta1"};
  if (!exec.present()) return {};
  CredentialProgram program;
  SPILLWAY_TRY(version, exec.child("apiVersion").required_text());
  if (std::ranges::find(kVersions, version) == kVersions.end()) {
    return exec.child("apiVersion").wrong("expected {} or {}, got \"{}\"", kVersions[0], kVersions[1], version);
  }
  program.api_version = std::move(version);
  SPILLWAY_TRY(command, exec.child("command").required_text());
  program.command = command.contains('/') ? beside(exec.file().path, command) : command;
  SPILLWAY_TRY(arguments, exec.child("args").elements());
  for (const Field& argument : arguments) {
    SPILLWAY_TRY(text, argument.text());
    program.arguments.push_back(std::move(text));
  }
  SPILLWAY_TRY(variables, exec.child("env").elements());
  for (const Field& variable : variables) {
    SPILLWAY_TRY(name, variable.child("name").required_text());
    if (name.contains('=')) return variable.child("name").wrong("expected a name without \"=\", got \"{}\"", name);
    SPILLWAY_TRY(value, variable.child("value").text());
    program.environment.emplace_back(std::move(name), std::move(value));
  }
  SPILLWAY_TRY(hint, exec.child("installHint").text());
  program.install_hint = std::move(hint);
  SPILLWAY_TRY(wants_cluster, exec.child("provideClusterInfo").flag());
  program.wants_cluster = wants_cluster;
  SPILLWAY_TRY(mode, exec.child("interactiveMode").text());
  if (mode == "Always")
    return exec.child("interactiveMode").wrong("Always is not supported: this process has no terminal");
  if (!mode.empty() && mode != "Never" && mode != "IfAvailable") {
    return exec.child("interactiveMode").wrong("expected Never, IfAvailable or Always, got \"{}\"", mode);
  }
  config.program = std::move(program);
  return {};
}

Outcome read_token(const Field& user, Kubeconfig& config) {
  SPILLWAY_TRY(token, user.child("token").text());
  const Field token_file = user.child("tokenFile");
  SPILLWAY_TRY(token_path, token_file.text());
  if (!token_path.empty()) {
    config.token_file = beside(user.file().path, token_path);
    auto text = read_bearer_token(config.token_file);
    if (text) token = *std::move(text);
    if (token.empty()) return token_file.wrong("{}", text.error().text());
  }
  config.token = std::move(token);
  return {};
}

Outcome read_user(const Field& user, Kubeconfig& config) {
  if (!user.present()) return {};  // no credentials
  for (const char* way : {"auth-provider", "as", "as-uid", "as-groups", "as-user-extra"}) {
    if (const Field field = user.child(way); field.present()) {
      return field.wrong("not supported; use exec, a client certificate, a token or a password");
    }
  }
  SPILLWAY_TRY(certificate, read_pem(user, "client-certificate"));
  SPILLWAY_TRY(key, read_pem(user, "client-key"));
  if (certificate.empty() != key.empty()) {
    return user.child(key.empty() ? "client-key" : "client-certificate").wrong("missing beside its counterpart");
  }
  config.certificate_pem = std::move(certificate);
  config.key_pem = std::move(key);
  SPILLWAY_TRY_VOID(read_token(user, config));
  SPILLWAY_TRY(username, user.child("username").text());
  SPILLWAY_TRY(password, user.child("password").text());
  if (username.empty() && !password.empty()) return user.child("username").wrong("missing beside its counterpart");
  if (!username.empty() && !config.token.empty())
    return user.child("token").wrong("must not be set together with username");
  config.username = std::move(username);
  config.password = std::move(password);
  return read_program(user.child("exec"), config);
}

std::string names_of(const Files& files) {
  std::string names;
  for (const File& file : files) names += (names.empty() ? "" : ":") + file.path;
  return names;
}

/// The entry of that name in the list `key`, from the first file that has one.
Result<Field> find_entry(const Files& files, const std::string& key, const std::string& name) {
  bool listed = false;
  for (const File& file : files) {
    const Field list = Field(file).child(key);
    listed = listed || list.present();
    SPILLWAY_TRY(found, list.named(name));
    if (found) return *std::move(found);
  }
  const std::string at = names_of(files) + ": " + key;
  if (!listed) return invalid(at, "missing");
  return invalid(at, "no entry named \"{}\"", name);
}

/// `chosen` if it is not empty, else current-context of the first file that has one.
Result<std::string> context_name(const Files& files, const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  for (const File& file : files) {
    SPILLWAY_TRY(current, Field(file).child("current-context").text());
    if (!current.empty()) return current;
  }
  return invalid(names_of(files) + ": current-context", "missing");
}

/// The value in `chosen`, or else the member of the context.
Result<std::string> chosen_or(const std::string& chosen, const std::optional<Field>& context, const std::string& key) {
  if (!chosen.empty() || !context) return chosen;
  return context->child(key).text();
}

Result<Kubeconfig> resolve(const Files& files, const KubeconfigChoice& choice) {
  std::optional<Field> context;
  // A cluster and a user that were named need no context.
  auto current = context_name(files, choice.context);
  if (!current && choice.cluster.empty()) return current.error();
  if (current) {
    SPILLWAY_TRY(entry, find_entry(files, "contexts", *current));
    context = entry.child("context");
  }
  SPILLWAY_TRY(cluster_name, chosen_or(choice.cluster, context, "cluster"));
  if (cluster_name.empty()) return context->child("cluster").wrong("missing");
  SPILLWAY_TRY(user_name, chosen_or(choice.user, context, "user"));
  Kubeconfig config;
  config.path = names_of(files);
  SPILLWAY_TRY(name_space, chosen_or(choice.name_space, context, "namespace"));
  config.name_space = std::move(name_space);
  SPILLWAY_TRY(cluster, find_entry(files, "clusters", cluster_name));
  SPILLWAY_TRY_VOID(read_cluster(cluster.child("cluster"), config));
  if (!user_name.empty()) {
    SPILLWAY_TRY(user, find_entry(files, "users", user_name));
    SPILLWAY_TRY_VOID(read_user(user.child("user"), config));
  }
  return config;
}

Result<File> parse_file(const std::string& text, const std::string& path) {
  SPILLWAY_TRY(document, yaml::parse(path, text));
  if (!document.value.is_object()) {
    return invalid(path, "expected a kubeconfig, found {}", document.value.is_null() ? "nothing" : "no mapping");
  }
  File file{path, std::move(document)};
  const Field kind = Field(file).child("kind");
  SPILLWAY_TRY(kind_text, kind.text());
  if (!kind_text.empty() && kind_text != "Config") return kind.wrong("expected Config, got \"{}\"", kind_text);
  return file;
}

void put(Json& object, std::string_view key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

/// [{name: NAME, KEY: value}]
Json one_entry(std::string_view name, std::string_view key, Json value) {
  Json entry = Json::object({{"name", name}});
  entry[key] = std::move(value);
  Json list = Json::array();
  list.if_array()->push_back(std::move(entry));
  return list;
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(const std::string& text, const std::string& path) {
  SPILLWAY_TRY(file, parse_file(text, path));
  Files files;
  files.push_back(std::move(file));
  return resolve(files, {});
}

Result<Kubeconfig> read_kubeconfig(const std::string& path) {
  return read_kubeconfig(std::vector{path}, {});
}

Result<Kubeconfig> read_kubeconfig(const std::vector<std::string>& paths, const KubeconfigChoice& choice) {
  Files files;
  for (const std::string& path : paths) {
    auto text = read_file(path);
    if (!text && text.error().code == ErrorCode::kNotFound && paths.size() > 1) continue;
    if (!text) return text.error();
    SPILLWAY_TRY(file, parse_file(*text, path));
    files.push_back(std::move(file));
  }
  if (files.empty())
    return Error{ErrorCode::kNotFound, "none of these kubeconfigs exists", fmt::format("{}", fmt::join(paths, ":"))};
  return resolve(files, choice);
}

std::string format_kubeconfig(const Kubeconfig& config, std::string_view name) {
  const auto encoded = [](const std::string& pem) { return pem.empty() ? pem : api::encode_base64(pem); };
  Json cluster = Json::object();
  put(cluster, "server", config.server);
  put(cluster, "certificate-authority-data", encoded(config.authority_pem));
  put(cluster, "tls-server-name", config.tls_server_name);
  if (!config.verify) cluster["insecure-skip-tls-verify"] = true;
  Json user = Json::object();
  put(user, "client-certificate-data", encoded(config.certificate_pem));
  put(user, "client-key-data", encoded(config.key_pem));
  put(user, "token", config.token);
  Json context = Json::object({{"cluster", name}, {"user", name}});
  put(context, "namespace", config.name_space);
  Json root = Json::object({{"apiVersion", "v1"}, {"kind", "Config"}});
  root["clusters"] = one_entry(name, "cluster", std::move(cluster));
  root["users"] = one_entry(name, "user", std::move(user));
  root["contexts"] = one_entry(name, "context", std::move(context));
  root["current-context"] = name;
  return yaml::to_text(root);
}

Outcome write_kubeconfig(const std::string& path, const Kubeconfig& config, std::string_view name) {
  return replace_file(path, format_kubeconfig(config, name));
}

}  // namespace spillway::wire
