package outlook

import "github.com/gangrun/gangrun/internal/diagnose/textmatch"

// login is what a shell says about the scripts that it runs before it begins with a job, and what their commands say
// because a job has no terminal.
var login = textmatch.New(`(?i)^(?:-?(?:ba|z|c|tc|k|da)?sh: )?(?:line \d+: )?["']?(?:/etc/(?:profile|bash\.?bashrc|bashrc|csh\.\w+|z\w*|motd|environment|inputrc|update-motd\.d|default)\b[^\s:]*|(?:~|\$HOME|/\S*)/\.(?:bash\w*|profile|cshrc|tcshrc|login|logout|zsh\w*|zprofile|kshrc|aliases|inputrc|Xauthority|dircolors)|\S*/(?:motd|issue|welcome|banner|greeting|login|logout)(?:\.\w+)?)["']?: |` +
	`^(?:\S*/)?(?:stty|tset|mesg|tput|tty|biff|xauth|xhost|xset|dircolors|lesspipe|manpath|fortune|neofetch|screenfetch|setterm|resize|reset)(?:: | error: )|^-?(?:ba|z)?sh: (?:cannot set terminal process group|no job control in this shell|warning: setlocale|/dev/tty: )|^(?:perl: warning: (?:Setting|Falling)|(?:\S*/)?(?:groups|id|whoami): cannot find name|fatal: (?:not a git repository|detected dubious ownership|unsafe repository|[Nn]o (?:names|tags?) )|(?:/\S*/)?(?:nvidia-smi|rocm-smi|dcgmi|lscpu|lspci|lstopo\S*|hwloc-\S+|ibstat\w*|dmidecode|lsb_release|git|svn|quota|sensors|ethtool): |(?:\S+ ){0,6}(?:sshd|crond?|dbus-daemon|sssd\w*|rsyslogd|chronyd|ntpd|polkitd|postfix\S*|NetworkManager|snmpd|dhclient|auditd|irqbalance|smartd|avahi-daemon|cupsd|systemd-(?:logind|udevd|journald|resolved|timesyncd)|gdm\S*|gnome-\S+|nscd|nslcd)\[\d+\]: |X11 forwarding request failed|Warning: No xauth data|TERM environment variable not set)`)

// Login reports whether a line comes from the scripts that a shell runs before it begins with a job.
func Login(t string) bool { return len(t) < longLine && login.MatchString(t) }
