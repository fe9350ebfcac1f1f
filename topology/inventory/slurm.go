package inventory

// slurmJob has what Slurm's variables say about an allocation. A text is "" if its variable is not set.
type slurmJob struct {
	nodes  string // SLURM_JOB_NODELIST
	tasks  string // SLURM_TASKS_PER_NODE
	cpus   string // SLURM_JOB_CPUS_PER_NODE
	stated bool   // the user set the number of tasks
	step   bool   // the variables may be those of a step, on fewer hosts
}

// slurm reads an allocation. Slots are Hard if the user asked for a number of tasks. Otherwise
// Slurm has computed them from the CPUs.
func slurm(j slurmJob) (List, error) {
	c := collect("SLURM_JOB_NODELIST", Slurm)
	names, bad := expand(j.nodes, MaxHosts)
	if bad != nil {
		c.bad(0, &fault{bad.text, slurmHint})
		return List{}, c.err()
	}
	for _, name := range names {
		name, bad := hostName(name)
		if bad != nil {
			c.bad(0, &fault{bad.text, slurmHint})
			continue
		}
		if h, isNew := c.host(0, name); h != nil && !isNew {
			c.bad(0, faultf(slurmHint, "names %s twice", quote(name)))
		}
	}
	if err := c.err(); err != nil {
		return List{}, err
	}
	hosts := c.list.Hosts
	perHost := func(variable, text string) ([]int, error) {
		if text == "" {
			return nil, nil
		}
		out, bad := repeats(text, len(hosts))
		if bad == nil {
			return out, nil
		}
		if j.step {
			c.note(0, variable+" is that of a step on other hosts and is not used")
			return nil, nil
		}
		bad.hint = slurmHint
		return nil, one(variable, 0, bad)
	}
	cpus, err := perHost("SLURM_JOB_CPUS_PER_NODE", j.cpus)
	if err != nil {
		return List{}, err
	}
	tasks, err := perHost("SLURM_TASKS_PER_NODE", j.tasks)
	if err != nil {
		return List{}, err
	}
	for i := range hosts {
		h := &hosts[i]
		if cpus != nil {
			h.Cores, h.Slots = cpus[i], cpus[i]
		}
		if tasks != nil {
			h.Slots, h.Hard = tasks[i], j.stated
		}
	}
	return c.list, nil
}

const slurmHint = "Slurm should have set it, with one number for each host; unset what you set yourself, or give --hosts"
